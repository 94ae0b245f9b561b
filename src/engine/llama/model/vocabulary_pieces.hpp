#pragma once

#include <llama.h>

#include "engine/grammar/token_pieces.hpp"

namespace sluice {

/// The tokens of a model. `vocab` may be null, which means that there are none.
TokenPieces pieces_of(const llama_vocab* vocab);

}  // namespace sluice
