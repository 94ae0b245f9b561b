#pragma once

// Models in files, which run in this process with llama.cpp. They are in a library of their own,
// sluice::llama in CMake and sluice-llama in pkg-config.

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/model.hpp"

namespace sluice {

/// Which file, and how much of the machine its model may use. The weights take about as much memory
/// as the file has bytes. Besides them, each slot takes memory for its tokens from the beginning.
struct LocalModelOptions {
  std::string file;                  // path of a GGUF file
  std::uint32_t slots = 4;           // answers that are given at the same time; 1 to 256
  std::uint32_t context_tokens = 0;  // of a request and its answer; 0: what the model was
                                     // trained for, or less if only less fits into half of the
                                     // free memory
  std::uint32_t threads = 0;         // at most 1,024; 0: one per core, but 1 for a tiny model
  std::string backend = "auto";      // what computes: "auto", "cpu", or the name of a GPU, if
                                     // llama.cpp was built for one
  std::int32_t gpu_layers = -1;      // layers on the GPU, at most 10,000; -1: as many as fit
  /// Gets how much of the model is loaded, from 0 to 1, never less than before. Called within
  /// local_model(). An exception of it ends loading, and local_model() throws it. Null: nobody
  /// asks.
  std::function<void(float loaded)> on_progress = {};
};

/// Loads the model and waits until it can answer: seconds for large files. The file may be removed
/// then, but not be changed. At most 256 requests wait for a slot; more fail with kBusy.
///
/// The end of the last handle breaks off answers and waits for one step of the model, which takes
/// milliseconds to seconds. Within callbacks of clients it does not wait, and the model ends later.
/// The end of the process waits for it too. If a model still has handles then, its answers break
/// off as in a crash.
///
/// Throws Error:
///   400    there is no `file`, a number is out of range, or there is no such backend
///   403    the file cannot be read, or is none
///   404    there is no such file
///   422    it is no GGUF file, or a broken one
///   501    this llama.cpp does not run such a model, or this CPU lacks instructions that it uses
///   503    there is not enough memory for the model or its context
///   kBusy  the system starts no thread for the model
Model local_model(const LocalModelOptions& options);

}  // namespace sluice
