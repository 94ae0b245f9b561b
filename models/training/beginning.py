"""The weights that a training begins with.

Transformers come to copy by "induction heads" (Olsson et al., In-context Learning and Induction
Heads, 2022), which a small one finds late, and later still what is built on them. This one begins
with them: layer 0 notes the token before and the one before that, layer 1 looks for where the token
stood already, layer 2 for where it stood after the same one, and both copy what followed. All
weights are trained from there.
"""

import torch

from training.network import angles_per_token

# The parts of the state at the beginning: a constant, the token, and what layer 0 notes of the token
# before and of the second before: projections of the same kind, so that they can be compared.
CONSTANT, TOKEN, BEFORE, SECOND_BEFORE = 0, slice(1, 112), slice(112, 160), slice(160, 192)
TOKEN_SCALE, NOTED_SCALE, COPIED_SCALE, OUTPUT_SCALE = 0.3, 0.3, 0.3, 0.06
LOOK_BACK, LOOK_FOR = 1.6, 3.0  # how sharply attention finds a distance, and the same token
TURNING = 5  # pairs of dimensions that find a distance
COPIED = 28  # dimensions of the token that one head copies


@torch.no_grad()
def begin(network):
    """Sets the weights of a network of the default Shape. What is not spoken of here stays random
    or, at the end of a layer, nothing."""
    shape, each = network.shape, network.shape.head_width
    width, noted = TOKEN.stop - TOKEN.start, BEFORE.stop - BEFORE.start
    network.token_embd.zero_()
    network.token_embd[:, CONSTANT] = 1.0
    network.token_embd[:, TOKEN] = torch.randn(shape.vocabulary, width) * TOKEN_SCALE
    network.output_norm.fill_(OUTPUT_SCALE)
    for layer in network.layers:
        layer.attn_output.zero_()
        layer.ffn_down.zero_()
    projection = torch.linalg.qr(torch.randn(width, noted))[0].t()
    state = torch.eye(shape.width)
    token_noted = torch.zeros(noted, shape.width)
    token_noted[:, TOKEN] = projection
    before, second_before = state[BEFORE], state[SECOND_BEFORE]

    first, second, third = network.layers[:3]
    look_back(first, 0, each, 1, projection[:32], BEFORE.start)
    look_back(first, 1, each, 1, projection[32:], BEFORE.start + 32)
    look_back(first, 2, each, 2, projection[:32], SECOND_BEFORE.start)
    for head in range(4):
        part = torch.arange(11 * head, 11 * head + 20) % noted
        look_for(second, head, each, token_noted[part], before[part])
        part, other = torch.arange(6 * head, 6 * head + 10), torch.arange(22 - 6 * head, 32 - 6 * head)
        look_for(third, head, each, torch.cat((before[other], token_noted[part])),
                 torch.cat((second_before[other], before[part])))


def emptied(layer, head, each):
    """The head's q, k and v, set to nothing, and its columns of the output."""
    rows = slice(head * each, head * each + each)
    matrices = layer.attn_q[rows], layer.attn_k[rows], layer.attn_v[rows]
    for matrix in matrices:
        matrix.zero_()
    return *matrices, layer.attn_output[:, rows]


def look_back(layer, head, each, steps, noted, start):
    """Makes the head see the token so many steps back, and note these projections of it from
    dimension `start` on."""
    q, k, v, output = emptied(layer, head, each)
    angles = torch.tensor(angles_per_token(each)[:TURNING]) * steps
    turned = torch.polar(torch.full_like(angles, LOOK_BACK), angles)
    q[0:2 * TURNING:2, CONSTANT] = LOOK_BACK
    k[0:2 * TURNING, CONSTANT] = torch.view_as_real(turned).flatten()
    v[:len(noted), TOKEN] = noted
    output[start:start + len(noted), :len(noted)] = torch.eye(len(noted)) * NOTED_SCALE


def look_for(layer, head, each, wanted, found):
    """Makes the head see where `found` of the state is the same as `wanted` of its own, and copy
    a part of the token there. It looks with the dimensions of a head that turn least."""
    q, k, v, output = emptied(layer, head, each)
    q[each - len(wanted):] = wanted * LOOK_FOR
    k[each - len(found):] = found * LOOK_FOR
    start = TOKEN.start + COPIED * head
    count = min(COPIED, TOKEN.stop - start)
    v[:count, start:start + count] = torch.eye(count)
    output[start:start + count, :count] = torch.eye(count) * COPIED_SCALE
