"""Writes the trained weights as a GGUF file that llama.cpp runs as a model of its llama
architecture. The format's description stands in ggml's gguf.h."""

import struct

import torch

from corpus.dialogue import CALL, CALL_END, CHAT_TEMPLATE, END
from training.network import angles_per_token

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
F32, F16 = 0, 1
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
ALIGNMENT = 32
ROPE_BASE = 10000.0
NOT_TURNING = 1e30

DESCRIPTION = (
    "A tiny language model, trained from scratch on sentences that a program made up. It greets, "
    "counts to 50, adds up to 20 + 20, tells small stories, calls tools and comments on their "
    "output. It knows nothing else and says so.")


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(key, kind, packed):
    return pair(key, ARRAY, struct.pack("<IQ", kind, len(packed)) + b"".join(packed))


def number(key, value):
    return pair(key, UINT32, struct.pack("<I", value))


def metadata(shape, tokenizer):
    specials = set(tokenizer.specials)
    shown = {CALL, CALL_END}
    kinds = [USER_DEFINED if token in shown else CONTROL if token in specials else NORMAL
             for token in tokenizer.tokens]
    end = tokenizer.ids[END]
    return [
        pair("general.architecture", STRING, text("llama")),
        pair("general.name", STRING, text("sluice-tiny")),
        pair("general.author", STRING, text("The Sluice authors")),
        pair("general.license", STRING, text("apache-2.0")),
        pair("general.description", STRING, text(DESCRIPTION)),
        number("general.file_type", 1),
        pair("general.sampling.temp", FLOAT32, struct.pack("<f", 0.2)),
        number("llama.context_length", shape.context),
        number("llama.embedding_length", shape.width),
        number("llama.block_count", shape.layers),
        number("llama.feed_forward_length", shape.hidden),
        number("llama.attention.head_count", shape.heads),
        number("llama.attention.head_count_kv", shape.heads),
        pair("llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", shape.rms_epsilon)),
        number("llama.rope.dimension_count", shape.head_width),
        pair("llama.rope.freq_base", FLOAT32, struct.pack("<f", ROPE_BASE)),
        number("llama.vocab_size", shape.vocabulary),
        pair("tokenizer.ggml.model", STRING, text("gpt2")),
        pair("tokenizer.ggml.pre", STRING, text("gpt-2")),
        array("tokenizer.ggml.tokens", STRING, [text(token) for token in tokenizer.tokens]),
        array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for kind in kinds]),
        array("tokenizer.ggml.merges", STRING, [text(" ".join(merge)) for merge in tokenizer.merges]),
        number("tokenizer.ggml.bos_token_id", end),
        number("tokenizer.ggml.eos_token_id", end),
        pair("tokenizer.ggml.add_bos_token", BOOL, struct.pack("<?", False)),
        pair("tokenizer.chat_template", STRING, text(CHAT_TEMPLATE)),
    ]


def rope_factors(head_width):
    """What llama.cpp divides its own angles by to get ours."""
    return torch.tensor([
        ROPE_BASE ** (-2 * i / head_width) / angle if angle else NOT_TURNING
        for i, angle in enumerate(angles_per_token(head_width))])


def tensors(network):
    shape = network.shape
    yield "token_embd.weight", network.token_embd
    yield "rope_freqs.weight", rope_factors(shape.head_width)
    for index, layer in enumerate(network.layers):
        for name, value in layer.named_parameters():
            yield f"blk.{index}.{name}.weight", value
    yield "output_norm.weight", network.output_norm


def export(network, tokenizer, path):
    """Matrices are written as 16-bit floats, vectors as 32-bit ones."""
    infos, data = [], bytearray()
    for name, value in tensors(network):
        kind = F16 if value.dim() == 2 else F32
        value = value.detach().to(torch.float16 if kind == F16 else torch.float32).contiguous()
        extents = list(reversed(value.shape))
        infos.append(text(name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, kind,
                                              len(data)))
        data += value.numpy().tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    pairs = metadata(network.shape, tokenizer)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs)) + b"".join(pairs + infos)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT) + data)
