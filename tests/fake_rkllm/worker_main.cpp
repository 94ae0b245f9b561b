// A worker for unit tests, as `sluice __rkllm-worker` is one.

#include <iostream>

#include "engine/rkllm/worker/worker.hpp"

int main() {
  std::cerr << sluice::rkllm::run_worker().message << '\n';
  return 1;
}
