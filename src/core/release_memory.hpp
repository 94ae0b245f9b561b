#pragma once

namespace sluice {

/// Empties a string or container and gives its memory back. Assigning an empty one need not: `= {}`
/// means an empty initializer list, and a short string is copied into the memory that is there.
template <class Container>
void release_memory(Container& container) {
  Container().swap(container);
}

}  // namespace sluice
