#!/usr/bin/env python3
"""Models of transformers, small and with drawn weights, as PyTorch exports them, on the CPU beside ONNX Runtime.

usage: exports_cpu.py FOLDER [NAME...] [--threads N] [--seconds S] [--library FILE]

FOLDER keeps NAME.onnx, which is exported where it is not there; that wants the packages torch, transformers and onnxscript, beside
those of tools/requirements.txt. Rounds alternate and times are medians, as of cpu.py.
"""
import argparse
import os
import sys
import tempfile
import warnings

import numpy as np
import onnx

import cpu
from library import Library

SMALL = {'vocab_size': 1000}


def tokens(rows, length):
    return np.random.default_rng(1).integers(0, 1000, (rows, length)).astype(np.int64)


def image(*shape):
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


# name: configuration, model, the call, inputs
MODELS = {
    't5 encoder': ('T5Config', 'T5EncoderModel', {**SMALL, 'd_model': 512, 'd_ff': 1024, 'num_layers': 3, 'num_heads': 8,
                                                  'is_gated_act': True, 'dense_act_fn': 'gelu_new'}, {'input_ids': tokens(1, 256)}),
    'whisper encoder': ('WhisperConfig', 'models.whisper.modeling_whisper.WhisperEncoder',
                        {'d_model': 384, 'encoder_layers': 3, 'encoder_attention_heads': 6, 'encoder_ffn_dim': 1536,
                         'max_source_positions': 500}, {'input_features': image(1, 80, 1000)}),
    'clip vision': ('CLIPVisionConfig', 'CLIPVisionModel', {'hidden_size': 512, 'intermediate_size': 2048, 'num_hidden_layers': 3,
                                                            'num_attention_heads': 8, 'image_size': 224, 'patch_size': 16},
                    {'pixel_values': image(1, 3, 224, 224)}),
    'swin': ('SwinConfig', 'SwinModel', {'image_size': 224, 'embed_dim': 48, 'depths': [2, 2], 'num_heads': [3, 6]},
             {'pixel_values': image(1, 3, 224, 224)}),
    'convnext': ('ConvNextConfig', 'ConvNextModel', {'depths': [2, 2, 2, 2], 'hidden_sizes': [48, 96, 192, 384]},
                 {'pixel_values': image(1, 3, 224, 224)}),
    'resnet': ('ResNetConfig', 'ResNetModel', {'depths': [2, 2, 2, 2], 'hidden_sizes': [64, 128, 256, 512], 'layer_type': 'basic',
                                               'embedding_size': 64}, {'pixel_values': image(1, 3, 224, 224)}),
    'qwen3': ('Qwen3Config', 'Qwen3ForCausalLM', {**SMALL, 'hidden_size': 512, 'intermediate_size': 1536, 'num_hidden_layers': 3,
                                                  'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 64},
              {'input_ids': tokens(1, 256)}),
    'gemma2': ('Gemma2Config', 'Gemma2ForCausalLM', {**SMALL, 'hidden_size': 512, 'intermediate_size': 1536, 'num_hidden_layers': 2,
                                                     'num_attention_heads': 8, 'num_key_value_heads': 4, 'head_dim': 64,
                                                     'sliding_window': 64}, {'input_ids': tokens(1, 256)}),
    'deberta': ('DebertaV2Config', 'DebertaV2Model', {**SMALL, 'hidden_size': 384, 'num_hidden_layers': 2, 'num_attention_heads': 6,
                                                      'intermediate_size': 1536, 'relative_attention': True,
                                                      'pos_att_type': ['p2c', 'c2p'], 'max_relative_positions': -1,
                                                      'position_buckets': 64}, {'input_ids': tokens(1, 128)}),
    'mamba': ('MambaConfig', 'MambaForCausalLM', {**SMALL, 'hidden_size': 256, 'num_hidden_layers': 2, 'state_size': 16},
              {'input_ids': tokens(1, 64)}),
    'distilbert': ('DistilBertConfig', 'DistilBertModel', {**SMALL, 'dim': 512, 'n_layers': 3, 'n_heads': 8, 'hidden_dim': 2048},
                   {'input_ids': tokens(2, 256), 'attention_mask': np.ones((2, 256), np.int64)}),
    'wav2vec2': ('Wav2Vec2Config', 'Wav2Vec2Model', {'hidden_size': 384, 'num_hidden_layers': 2, 'num_attention_heads': 6,
                                                     'intermediate_size': 1536}, {'input_values': image(1, 16000)}),
}


def export(name, path):
    import torch
    import transformers
    configuration, model, settings, inputs = MODELS[name]
    *package, kind = model.split('.')
    module = transformers
    if package:
        import importlib
        module = importlib.import_module('transformers.' + '.'.join(package))
    torch.manual_seed(0)

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = getattr(module, kind)(getattr(transformers, configuration)(**settings))

        def forward(self, *given):
            more = {'use_cache': False} if kind.endswith('ForCausalLM') and 'Mamba' not in kind else {}
            return self.inner(**dict(zip(inputs, given)), **more)[0]

    arrays = tuple(torch.from_numpy(array) for array in inputs.values())
    with torch.no_grad():
        torch.onnx.export(First().eval(), arrays, path, input_names=list(inputs), output_names=['y'], dynamo=True,
                          external_data=False, verbose=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=2.0)
    parser.add_argument('--library', default=f'{cpu.ROOT}/build/libblockbuster.so')
    parser.add_argument('--machine', default='host')
    parser.add_argument('--block', action='append', default=[])
    options = parser.parse_args()
    options.steps = options.verbose = False
    warnings.filterwarnings('ignore')
    os.makedirs(options.folder, exist_ok=True)
    library = Library(options.library)
    print('| model | ours, ms | ONNX Runtime, ms | ratio | error |\n|---|---|---|---|---|')
    for name in options.names or MODELS:
        path = os.path.join(options.folder, name.replace(' ', '_') + '.onnx')
        if not os.path.exists(path):
            export(name, path)
        made = onnx.load(path)
        wires = {i.name for i in made.graph.input}
        inputs = {n: array for n, array in MODELS[name][3].items() if n in wires}
        cpu.ROWS[name] = lambda: ({'as it is': made}, inputs, 0)
        with tempfile.TemporaryDirectory() as folder:
            row = cpu.bench(name, options, library, folder)
        print(f"| {name} | {row['ours'] * 1e3:.2f} | {row['theirs'] * 1e3:.2f} | {row['ratio']:.2f} | {row['error']:.1e} |", flush=True)


if __name__ == '__main__':
    sys.exit(main())
