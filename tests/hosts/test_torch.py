"""PyTorch tensors are something `numpy.asarray` takes; the core itself never imports torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from calcore import CellTable, ScoreTable, certify


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    scores = torch.rand(5000, generator=generator, dtype=torch.float64)
    return (torch.rand(5000, generator=generator) < scores**2).long(), scores


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float32])
def test_tensors_give_the_arrays_numbers(batch, dtype) -> None:
    labels, scores = batch
    expected = certify(labels.numpy(), scores.numpy()).to_dict()
    assert certify(labels.to(dtype), scores).to_dict() == expected
    assert certify(ScoreTable(labels.to(dtype), scores)).to_dict() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_lower_precision(batch, dtype) -> None:
    labels, scores = batch
    narrow = scores.to(dtype)
    assert certify(labels, narrow).to_dict() == certify(labels.numpy(), narrow.numpy()).to_dict()


def test_zero_copy_and_untouched(batch) -> None:
    labels, scores = batch
    before = scores.clone()
    CellTable().update(labels, scores)
    assert torch.equal(before, scores)


def test_strided_and_detached(batch) -> None:
    labels, scores = batch
    both = torch.stack([labels.double(), scores], dim=1)
    assert certify(both[:, 0], both[:, 1]).to_dict() == certify(labels, scores).to_dict()
    needs_grad = scores.clone().requires_grad_(True)
    with pytest.raises((ValueError, TypeError), match=r"detach\(\)"):
        certify(labels, needs_grad)
    assert certify(labels, needs_grad.detach()).to_dict() == certify(labels, scores).to_dict()


def test_batches_of_a_loader_add_up(batch) -> None:
    labels, scores = batch
    data = torch.utils.data.TensorDataset(labels, scores)
    table = CellTable()
    for y, s in torch.utils.data.DataLoader(data, batch_size=137, shuffle=True):
        table.update(y, s)
    once = CellTable().update(labels, scores)
    assert certify(table).to_dict() == certify(once).to_dict()


def test_logits_are_refused(batch) -> None:
    labels, scores = batch
    with pytest.raises(ValueError, match=r"y_prob.*\[0, 1\]"):
        certify(labels, torch.logit(scores))


def test_a_column_of_an_output_layer_is_2d(batch) -> None:
    labels, scores = batch
    with pytest.raises(ValueError, match="y_prob"):
        certify(labels, scores[:, None])
    assert np.isfinite(certify(labels, scores[:, None].squeeze(1)).upper)
