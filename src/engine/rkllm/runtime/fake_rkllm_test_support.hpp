#pragma once

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

#include "engine/rkllm/abi/abi.hpp"

namespace sluice::rkllm::test {

/// The stand-in for librkllmrt.so of this ABI (tests/fake_rkllm).
inline std::string fake_library(Abi abi) {
  return std::string(SLUICE_FAKE_RKLLM) + "/" + std::string(facts_of(abi).name) + "/librkllmrt.so";
}

/// Says to stand-ins of this process what to do, and reads what they were asked. One at a time.
class FakeScript {
 public:
  explicit FakeScript(const std::string& steps) {
    std::ofstream(script_) << steps;
    ::setenv("FAKE_RKLLM_SCRIPT", script_.c_str(), 1);
    ::setenv("FAKE_RKLLM_LOG", log_.c_str(), 1);
    std::ofstream(log_, std::ios::trunc).flush();
  }
  ~FakeScript() {
    ::unsetenv("FAKE_RKLLM_SCRIPT");
    ::unsetenv("FAKE_RKLLM_LOG");
  }
  FakeScript(const FakeScript&) = delete;
  FakeScript& operator=(const FakeScript&) = delete;

  /// For runtimes that are loaded from now on.
  void change(const std::string& steps) const { std::ofstream(script_) << steps; }

  [[nodiscard]] std::string log() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string script_ = ::testing::TempDir() + "fake_rkllm_script";
  std::string log_ = ::testing::TempDir() + "fake_rkllm_log";
};

}  // namespace sluice::rkllm::test
