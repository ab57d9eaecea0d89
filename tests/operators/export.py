#!/usr/bin/env python3
"""The operators of this folder as a user's PyTorch modules, exported to ONNX: float16, lengths that are not fixed.

usage: export.py FOLDER [NAME...]   (writes NAME.onnx; needs torch, onnxscript and onnx)

Each module is written as models write it, so that the converter meets what exporters make of it: heads that
share keys are repeated, masks are arange and where, norms are torch's own.
"""
import argparse
import pathlib
import sys

import onnx
import torch
import torch.nn.functional as F

HEADS, SIZE, WINDOW, CAP = 32, 128, 4096, 50.0


def places(queries, keys):
    """Of queries, which are the last of the keys, and of keys."""
    return torch.arange(keys).view(1, -1) - torch.arange(keys - queries, keys).view(-1, 1)


def repeated(x, times):
    return x.repeat_interleave(times, dim=1)


def slopes(heads):
    return torch.pow(2.0, -8.0 / heads * torch.arange(1, heads + 1)).view(1, -1, 1, 1)


class Attention(torch.nn.Module):
    """softmax(scores) v by hand; `behind`: keys behind the query are seen, at most so many."""

    def __init__(self, share=1, behind=0, cap=0.0, alibi=False, decode=False):
        super().__init__()
        self.share, self.behind, self.cap, self.alibi, self.decode = share, behind, cap, alibi, decode

    def forward(self, q, k, v):
        if self.share > 1:
            k, v = repeated(k, self.share), repeated(v, self.share)
        scores = q @ k.transpose(-2, -1) * SIZE**-0.5
        if self.cap:
            scores = self.cap * torch.tanh(scores / self.cap)
        distance = places(q.shape[-2], k.shape[-2])
        if self.alibi:
            scores = scores + (slopes(q.shape[1]) * distance).to(scores.dtype)
        if not self.decode and self.behind:
            seen = distance <= 0
            if self.behind > 1:
                seen = seen & (distance > -self.behind)
            scores = scores.masked_fill(~seen, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


class Scaled(torch.nn.Module):
    """By torch's own operator."""

    def __init__(self, causal=False, share=1):
        super().__init__()
        self.causal, self.share = causal, share

    def forward(self, q, k, v):
        if self.share > 1:
            k, v = repeated(k, self.share), repeated(v, self.share)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class Placed(torch.nn.Module):
    """Causal by a mask of the tokens' places, which also tells sequences packed in one row apart, as transformers do."""

    def forward(self, q, k, v):
        place = torch.arange(q.shape[-2]).unsqueeze(0)
        begins = torch.diff(place, prepend=place[:, :1] - 1, dim=-1) != 1
        sequence = begins.cumsum(-1)
        row, column = torch.arange(q.shape[-2]).view(-1, 1), torch.arange(k.shape[-2]).view(1, -1)
        together = sequence[0, row] == sequence[0, column]
        seen = together & (place[0, column] <= place[0, row])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen.view(1, 1, *seen.shape))


class NormProduct(torch.nn.Module):
    def forward(self, x, weight):
        return F.linear(F.layer_norm(x, x.shape[-1:]), weight)


class NormGated(torch.nn.Module):
    def forward(self, x, gate, up, down):
        x = x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).half()
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def qkv(heads, shared, decode=False, length=64):
    shape = lambda h, n: torch.randn(1, h, n, SIZE, dtype=torch.float16)
    return shape(heads, 1 if decode else length), shape(shared, length), shape(shared, length)


def rows(m, *weights):
    return tuple(torch.randn(*s, dtype=torch.float16) * 0.02 for s in ((m, weights[0][1]), *weights))


WIDE = (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336)
OPERATORS = {
    "global_prefill": (Scaled(), qkv(32, 32)),
    "causal": (Scaled(causal=True), qkv(32, 32)),
    "causal_places": (Placed(), qkv(32, 32)),
    "gqa": (Scaled(causal=True, share=8), qkv(64, 8)),
    "alibi": (Attention(behind=1, alibi=True), qkv(32, 32)),
    "softcap": (Attention(share=2, behind=1, cap=CAP), qkv(32, 16)),
    "window": (Attention(share=2, behind=WINDOW), qkv(32, 16)),
    "decode": (Scaled(), qkv(32, 32, decode=True)),
    "decode_group": (Scaled(share=8), qkv(64, 8, decode=True)),
    "decode_alibi": (Attention(alibi=True, decode=True), qkv(32, 32, decode=True)),
    "decode_softcap": (Attention(share=2, cap=CAP, decode=True), qkv(32, 16, decode=True)),
    "norm_product": (NormProduct(), rows(64, WIDE[0])),
    "norm_swiglu": (NormGated(), rows(64, *WIDE[1:])),
}


def bare(path):
    """Leaves out what an exporter notes about itself, and the name of a file of no weights."""
    model = onnx.load(path)
    del model.graph.value_info[:], model.graph.metadata_props[:], model.metadata_props[:]
    for value in (model, model.graph, *model.graph.node):
        value.doc_string = ""
    for node in model.graph.node:
        del node.metadata_props[:]
    path.with_name(path.name + ".data").unlink(missing_ok=True)
    onnx.save(model, path)


def export(name, path, dynamo):
    module, inputs = OPERATORS[name]
    length = torch.export.Dim("N", min=2, max=1 << 20)
    attends = len(inputs) == 3
    if attends:
        free = [x.shape[-2] > 1 for x in inputs]
        names = ["q", "k", "v"]
    else:
        free = [True] + [False] * (len(inputs) - 1)
        names = ["x", "weight"] if len(inputs) == 2 else ["x", "gate", "up", "down"]
    axis = 2 if attends else 0
    with torch.no_grad():
        if dynamo:
            torch.onnx.export(module.half().eval(), inputs, path, dynamo=True, input_names=names, output_names=["y"],
                              dynamic_shapes=tuple({axis: length} if f else None for f in free), verbose=False)
        else:
            torch.onnx.export(module.half().eval(), inputs, path, dynamo=False, input_names=names, output_names=["y"],
                              opset_version=17, dynamic_axes={n: {axis: "N"} for n, f in zip(names, free) if f})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torchscript", action="store_true", help="by torch's older exporter")
    options = parser.parse_args()
    for name in options.names or OPERATORS:
        path = options.folder / f"{name}.onnx"
        export(name, path, not options.torchscript)
        bare(path)


if __name__ == "__main__":
    sys.exit(main())
