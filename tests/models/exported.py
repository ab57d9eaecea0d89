"""Two small models of transformers with drawn weights, in float16, as PyTorch exports them with a mask that is an input: a decoder with
grouped heads and an encoder whose places are counted from the mask.  Writes NAME.onnx and NAME.npz, which ONNX Runtime gave.

usage: exported.py FOLDER          wants torch, transformers, onnxscript and onnxruntime; 2026-11: 2.15.0, 5.24.0, 0.7.2, 1.32.0
"""
import sys

import numpy as np
import onnxruntime
import torch
import transformers

SMALL = {'vocab_size': 64, 'num_hidden_layers': 1, 'pad_token_id': 1}
MODELS = {
    'decoder': transformers.LlamaModel(transformers.LlamaConfig(**SMALL, hidden_size=128, num_attention_heads=2, num_key_value_heads=1,
                                                                intermediate_size=128)),
    'encoder': transformers.RobertaModel(transformers.RobertaConfig(**SMALL, hidden_size=128, num_attention_heads=2, intermediate_size=128,
                                                                    max_position_embeddings=300)),
}


class First(torch.nn.Module):
    """The last hidden states alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.more = {'use_cache': False} if 'Llama' in type(model).__name__ else {}

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask, **self.more)[0]


def main():
    rng = np.random.default_rng(0)
    for name, model in MODELS.items():
        torch.manual_seed(0)
        path = f'{sys.argv[1]}/{name}'
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.05)
        ids, mask = rng.integers(2, 64, (2, 70)), np.ones((2, 70), np.int64)
        ids[1, 41:], mask[1, 41:] = 1, 0
        batch, rows = torch.export.Dim('batch', max=64), torch.export.Dim('rows', max=256)
        torch.onnx.export(First(model.half().eval()), (torch.from_numpy(ids), torch.from_numpy(mask)), f'{path}.onnx', dynamo=True,
                          external_data=False, dynamic_shapes={'ids': {0: batch, 1: rows}, 'mask': {0: batch, 1: rows}})
        session = onnxruntime.InferenceSession(f'{path}.onnx')
        made = session.run(None, {'ids': ids, 'mask': mask})[0]
        np.savez_compressed(f'{path}.npz', ids=ids, mask=mask, **{session.get_outputs()[0].name: made})


main()
