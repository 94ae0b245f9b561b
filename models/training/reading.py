"""Reads a file that export.py has written, so that a training can begin with its weights."""

import struct

import torch

from corpus.dialogue import SPECIALS
from tokenizer import Tokenizer
from training.export import ALIGNMENT, ARRAY, BOOL, F16, FLOAT32, INT32, STRING, UINT32

SIZES = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


class Reader:
    """Takes values from the front of bytes."""

    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return values[0] if len(values) == 1 else values

    def text(self):
        length = self.take("<Q")
        self.position += length
        return self.data[self.position - length:self.position].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            of, count = self.take("<IQ")
            return [self.value(of) for _ in range(count)]
        return self.take(SIZES[kind])


def tensor_names(network):
    """The name in the file of each parameter's tensor."""
    return {name: name.replace("layers.", "blk.") + ".weight" for name, _ in network.named_parameters()}


def read(path):
    """The tokenizer, and the tensors by their names, of 32 bits."""
    reader = Reader(path.read_bytes())
    magic, version, tensors, pairs = reader.take("<4sIQQ")
    if (magic, version) != (b"GGUF", 3):
        raise ValueError(f"{path} is not a GGUF file of version 3")
    metadata = {}
    for _ in range(pairs):
        key = reader.text()
        metadata[key] = reader.value(reader.take("<I"))
    infos = []
    for _ in range(tensors):
        name = reader.text()
        extents = [reader.take("<Q") for _ in range(reader.take("<I"))]
        infos.append((name, extents, *reader.take("<IQ")))
    start = -(-reader.position // ALIGNMENT) * ALIGNMENT
    found = {}
    for name, extents, kind, offset in infos:
        count = torch.Size(extents).numel()
        values = torch.frombuffer(bytearray(reader.data), offset=start + offset, count=count,
                                  dtype=torch.float16 if kind == F16 else torch.float32)
        found[name] = values.float().view(*reversed(extents))
    merges = [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]]
    return Tokenizer(SPECIALS, merges), found


def begin_with(network, tensors):
    """Sets the network's weights to those of the file. The file must have the same shape."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(tensors[tensor_names(network)[name]])
