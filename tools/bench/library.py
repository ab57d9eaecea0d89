"""Models run through libblockbuster, as a program that links it does: read, fuse, compile, a session, bound arrays.

A failed call raises Failed with the library's message.
"""
import ctypes
import os

import numpy as np

VERSION = 102
FUSED = 3
TYPES = {'float64': 0, 'float32': 1, 'float16': 2, 'bfloat16': 3, 'int64': 4, 'int32': 5, 'bool': 6}
INPUT, OUTPUT = 0, 1

u32, i64, text, pointer = ctypes.c_uint32, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p


class Setting(ctypes.Structure):
    _fields_ = [('name', text), ('value', i64)]


class ContextOptions(ctypes.Structure):
    _fields_ = [('version', u32), ('resize', pointer), ('resize_user', pointer), ('log', pointer), ('log_user', pointer),
                ('verify', ctypes.c_bool)]


class AdvanceOptions(ctypes.Structure):
    _fields_ = [('version', u32), ('cuts', u32), ('cut', pointer), ('no_extend', ctypes.c_bool), ('peel', ctypes.c_bool),
                ('naive', ctypes.c_bool), ('strict', ctypes.c_bool), ('stop_after', u32), ('disabled_rules', ctypes.c_uint64),
                ('fold', ctypes.c_int), ('chunks', u32), ('machine', text), ('dims', u32), ('dim', pointer),
                ('programs', u32), ('ranges', u32), ('range', pointer),
                ('tries', pointer), ('hits', pointer), ('phase', pointer), ('begin', pointer), ('rewrite', pointer),
                ('user', pointer)]


class CompileOptions(ctypes.Structure):
    _fields_ = [('version', u32), ('cache', text), ('blocks', u32), ('block', ctypes.POINTER(Setting)), ('device', text)]


class StepEvent(ctypes.Structure):
    _fields_ = [('step', u32), ('name', text), ('seconds', ctypes.c_double), ('bytes', ctypes.c_double),
                ('operations', ctypes.c_double)]


Observer = ctypes.CFUNCTYPE(ctypes.c_bool, pointer, ctypes.POINTER(StepEvent))


class SessionOptions(ctypes.Structure):
    _fields_ = [('version', u32), ('threads', u32), ('parallel', pointer), ('parallel_user', pointer),
                ('observe', Observer), ('observe_user', pointer)]


class TensorView(ctypes.Structure):
    _fields_ = [('dtype', ctypes.c_int), ('rank', u32), ('shape', ctypes.POINTER(i64)), ('stride', ctypes.POINTER(i64)),
                ('data', pointer)]


class TensorInfo(ctypes.Structure):
    _fields_ = [('name', text), ('dtype', ctypes.c_int), ('rank', u32), ('shape', ctypes.POINTER(i64)),
                ('extent', ctypes.POINTER(text))]


class Failed(Exception):
    pass


def view_of(array):
    shape = (i64 * max(array.ndim, 1))(*array.shape)
    return TensorView(TYPES[array.dtype.name], array.ndim, shape, None, array.ctypes.data)


class Library:
    def __init__(self, path):
        self.call = ctypes.CDLL(path)
        self.call.bb_context_message.restype = text
        self.call.bb_session_run.argtypes = [pointer, pointer]


class Model:
    """A model file, compiled by what `machine` costs; block sizes may be given by dim."""

    def __init__(self, library, path, machine='host', block=None):
        self.lib, self.context, self.model = library.call, pointer(), pointer()
        options, program = ContextOptions(VERSION), pointer()
        if self.lib.bb_context_create(ctypes.byref(options), ctypes.byref(self.context)):
            raise Failed('no context')
        self.check(self.lib.bb_program_read(self.context, os.fsencode(path), ctypes.byref(program)))
        advance = AdvanceOptions(version=VERSION, machine=machine.encode() if machine is not None else None)
        self.check(self.lib.bb_program_advance(program, FUSED, ctypes.byref(advance)))
        sizes = (Setting * max(len(block or {}), 1))(*[(n.encode(), v) for n, v in (block or {}).items()])
        how = CompileOptions(VERSION, None, len(block or {}), sizes)
        self.check(self.lib.bb_program_compile(program, ctypes.byref(how), ctypes.byref(self.model)))
        self.lib.bb_program_destroy(program)

    def check(self, status):
        if status:
            raise Failed(self.lib.bb_context_message(self.context).decode())

    def names(self, side):
        info, found = TensorInfo(), []
        while self.lib.bb_model_get_tensor(self.model, side, len(found), ctypes.byref(info)):
            found.append(info.name.decode())
        return found

    def close(self):
        self.lib.bb_model_release(self.model)
        self.lib.bb_context_destroy(self.context)


class Session:
    """Runs a model on arrays that stay bound."""

    def __init__(self, model, inputs, threads, observe=None):
        self.model, self.lib, self.session, self.arrays = model, model.lib, pointer(), inputs
        self.observer = Observer(observe) if observe else Observer()
        options = SessionOptions(VERSION, threads, None, None, self.observer, None)
        model.check(self.lib.bb_session_create(model.context, model.model, ctypes.byref(options), ctypes.byref(self.session)))
        for index, name in enumerate(model.names(INPUT)):
            view = view_of(inputs[name])
            model.check(self.lib.bb_session_bind(self.session, INPUT, index, ctypes.byref(view)))
        self.handle = self.session.value

    def run(self):
        if self.lib.bb_session_run(self.handle, None):
            raise Failed(self.lib.bb_context_message(self.model.context).decode())

    def outputs(self):
        got, view = {}, TensorView()
        for index, name in enumerate(self.model.names(OUTPUT)):
            self.model.check(self.lib.bb_session_get(self.session, OUTPUT, index, ctypes.byref(view)))
            dtype = next(np.dtype(t) for t, number in TYPES.items() if number == view.dtype)
            shape = [view.shape[i] for i in range(view.rank)]
            size = int(np.prod(shape)) * dtype.itemsize
            got[name] = np.frombuffer(ctypes.string_at(view.data, size), dtype).reshape(shape)
        return got

    def close(self):
        self.lib.bb_session_destroy(self.session)
