"""Numbers over the arms of each data set: what numpy's reductions give, for few arms and for many."""

import numpy as np
import pytest

from armnesia.core.arrays import highest_of_arms, numbers_of_arms, sums_of_arms


@pytest.mark.parametrize("shape", [(3,), (1,), (0, 3), (4, 0), (2000, 1), (2000, 5), (40, 50, 2), (2000, 30)])
def test_they_are_the_reductions_over_the_last_axis(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    values, whole = rng.normal(size=shape), rng.integers(0, 9, size=shape)
    np.testing.assert_allclose(sums_of_arms(values), values.sum(axis=-1), rtol=0, atol=1e-14)
    for found, expected in (
        (sums_of_arms(whole), whole.sum(axis=-1)),
        (numbers_of_arms(values > 0), (values > 0).sum(axis=-1)),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    if shape[-1]:
        np.testing.assert_array_equal(highest_of_arms(values), values.max(axis=-1))
