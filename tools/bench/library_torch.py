"""Folders that `blockbuster compile --device cuda -o FOLDER` made, run by libblockbuster-rt on PyTorch's arrays and streams.

A failed call raises Failed with the library's message.
"""
import ctypes
import os
import time

import torch

import library
from library import INPUT as IN, OUTPUT as OUT, TYPES, VERSION, Failed, TensorView, i64, pointer, text, u32


class Options(ctypes.Structure):
    """Of any call: its version, and nothing that is chosen."""
    _fields_ = [('version', u32), ('rest', pointer * 8)]


def view_of(t):
    stride = None if t.is_contiguous() else (i64 * t.dim())(*t.stride())
    return TensorView(TYPES[str(t.dtype).removeprefix('torch.')], t.dim(), (i64 * t.dim())(*t.shape), stride, t.data_ptr())


class Model(library.Model):
    """A compiled folder; what can be asked of it is as of any model."""

    def __init__(self, path, folder):
        self.lib, self.context, self.model = ctypes.CDLL(path), pointer(), pointer()
        self.lib.bb_context_message.restype = text
        self.lib.bb_session_bind.argtypes = [pointer, ctypes.c_int, u32, pointer]
        self.lib.bb_session_run.argtypes = [pointer, pointer]
        options = Options(VERSION)
        if self.lib.bb_context_create(ctypes.byref(options), ctypes.byref(self.context)):
            raise Failed('no context')
        began = time.perf_counter()
        self.check(self.lib.bb_model_load(self.context, os.fsencode(folder), ctypes.byref(self.model)))
        self.seconds = time.perf_counter() - began  # to load it


class Session:
    """Runs on what is bound, in a stream of PyTorch's: also while a graph is captured there."""

    def __init__(self, model, tensors=None):
        self.model, self.lib, self.session = model, model.lib, pointer()
        options = Options(VERSION)
        model.check(self.lib.bb_session_create(model.context, model.model, ctypes.byref(options), ctypes.byref(self.session)))
        self.tensors = tensors or {}  # are to live as long
        for side in (IN, OUT) if tensors else ():
            for index, name in enumerate(model.names(side)):
                self.bind(side, index, tensors[name])

    def bind(self, side, index, tensor):
        self.model.check(self.lib.bb_session_bind(self.session, side, index, ctypes.byref(view_of(tensor))))

    def run(self, stream):
        self.model.check(self.lib.bb_session_run(self.session, stream))

    def __del__(self):
        self.lib.bb_session_destroy(self.session)
