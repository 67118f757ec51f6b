// What the page does beyond htmx: copying, the numbers beside sliders, and the privacy curve.
"use strict";

document.documentElement.classList.add("script");

function copyField(button) {
  const field = document.getElementById(button.dataset.copy);
  field.select();
  const copied = navigator.clipboard ? navigator.clipboard.writeText(field.value) : Promise.reject();
  copied.catch(() => document.execCommand("copy")).then(() => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

function showNumber(slider) {
  const output = document.querySelector(`output[for="${slider.id}"]`);
  if (output) output.textContent = (output.dataset.prefix || "") + slider.value + (output.dataset.suffix || "");
}

let chart = null;

function drawCurve() {
  const place = document.getElementById("curve");
  if (!place || typeof uPlot === "undefined") return;
  const { epsilon, delta, chosen } = JSON.parse(place.dataset.curve);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "13px system-ui, sans-serif" };
  const mark = {
    hooks: {
      draw: (plot) => {
        const x = plot.valToPos(chosen[0], "x", true), y = plot.valToPos(Math.max(chosen[1], 1e-12), "y", true);
        plot.ctx.fillStyle = colour("--accent");
        plot.ctx.beginPath();
        plot.ctx.arc(x, y, 5 * devicePixelRatio, 0, 2 * Math.PI);
        plot.ctx.fill();
      },
    },
  };
  if (chart) chart.destroy();
  chart = new uPlot({
    width: Math.max(place.clientWidth, 240),
    height: 260,
    plugins: [mark],
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false }, y: { distr: 3, log: 10, range: [1e-12, 1] } },
    series: [
      { label: "ε", value: (_, value) => (value === null ? "–" : value.toFixed(2)) },
      { label: "δ", stroke: colour("--accent"), width: 2, value: (_, value) => (value === null ? "–" : value.toExponential(1)) },
    ],
    axes: [{ ...axis }, { ...axis, size: 60, splits: () => [1e-12, 1e-9, 1e-6, 1e-3, 1], filter: (_, ticks) => ticks, values: (_, ticks) => ticks.map((value) => (value === 1 ? "1" : value.toExponential(0))) }],
  }, [epsilon, delta], place);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copyField(button);
});
document.addEventListener("input", (event) => {
  if (event.target.type === "range") showNumber(event.target);
});
document.addEventListener("htmx:afterSwap", drawCurve);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCurve);
window.addEventListener("resize", drawCurve);
drawCurve();
