#include "engine/llama/model/cpu_check.hpp"

#include <string>

#include <ggml-cpu.h>

#include "engine/llama/model/model_fault.hpp"

namespace sluice {

std::vector<CpuFeature> cpu_features() {
#if defined(__x86_64__)
  const auto feature = [](std::string_view name, int built, int here) {
    return CpuFeature{.name = name, .built = built != 0, .here = here != 0};
  };
  __builtin_cpu_init();
  return {
      feature("AVX2", ggml_cpu_has_avx2(), __builtin_cpu_supports("avx2")),
      feature("FMA", ggml_cpu_has_fma(), __builtin_cpu_supports("fma")),
      feature("BMI2", ggml_cpu_has_bmi2(), __builtin_cpu_supports("bmi2")),
      feature("AVX-512", ggml_cpu_has_avx512(), __builtin_cpu_supports("avx512f")),
      feature("AVX-512 VBMI", ggml_cpu_has_avx512_vbmi(), __builtin_cpu_supports("avx512vbmi")),
      feature("AVX-512 VNNI", ggml_cpu_has_avx512_vnni(), __builtin_cpu_supports("avx512vnni")),
      feature("AVX-512 BF16", ggml_cpu_has_avx512_bf16(), __builtin_cpu_supports("avx512bf16")),
  };
#else
  return {};
#endif
}

Result<void> check_cpu(std::span<const CpuFeature> features) {
  for (const CpuFeature& feature : features) {
    if (!feature.built || feature.here) continue;
    return fail(static_cast<int>(ModelFault::unsupported),
                "this program was built for a CPU with " + std::string(feature.name) +
                    ", which this one does not have; build it on this machine, or with "
                    "SLUICE_CPU=x86-64-v3");
  }
  return {};
}

}  // namespace sluice
