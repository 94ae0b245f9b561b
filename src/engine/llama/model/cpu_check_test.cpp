#include "engine/llama/model/cpu_check.hpp"

#include <array>
#include <gtest/gtest.h>

#include "engine/llama/model/model_fault.hpp"

namespace sluice {
namespace {

TEST(CpuCheck, ThisMachineRunsWhatItBuilt) {
  EXPECT_TRUE(check_cpu(cpu_features()));
}

TEST(CpuCheck, RefusesToRunWhatTheCpuDoesNotKnow) {
  const std::array known = {CpuFeature{.name = "AVX2", .built = true, .here = true},
                            CpuFeature{.name = "AVX-512", .built = false, .here = false},
                            CpuFeature{.name = "AVX-512 VNNI", .built = false, .here = true}};
  EXPECT_TRUE(check_cpu(known));

  const std::array missing = {CpuFeature{.name = "AVX2", .built = true, .here = true},
                              CpuFeature{.name = "AVX-512", .built = true, .here = false}};
  const auto checked = check_cpu(missing);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, static_cast<int>(ModelFault::unsupported));
  EXPECT_EQ(checked.error().message,
            "this program was built for a CPU with AVX-512, which this one does not have; build it "
            "on this machine, or with SLUICE_CPU=x86-64-v3");
}

}  // namespace
}  // namespace sluice
