#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "cli/doctor/doctor_checks.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Status = Check::Status;

/// A board, as far as its kernel shows it in files.
class DoctorNpuTest : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view content) {
    const std::filesystem::path path = root_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  /// A Radxa ROCK 5B with all clocks at their highest.
  void write_board() {
    using namespace std::string_view_literals;
    write("proc/device-tree/model", "Radxa ROCK 5B\0"sv);
    write("proc/device-tree/compatible", "radxa,rock-5b\0rockchip,rk3588\0"sv);
    write("sys/kernel/debug/rknpu/version", "RKNPU driver: v0.9.8\n");
    write("sys/kernel/debug/rknpu/load", "NPU load:  Core0: 23%, Core1:  0%, Core2:  0%,\n");
    write_clock("sys/class/devfreq/dmc/", "userspace", "2112000000");
    write_clock("sys/class/devfreq/fdab0000.npu/", "performance", "2112000000");
    write("sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "performance\n");
    write("sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq", "2400000\n");
    write("sys/devices/system/cpu/cpufreq/policy4/scaling_available_frequencies",
          "408000 1800000 2400000 \n");
  }
  void write_clock(const std::string& folder, std::string_view governor, std::string_view now) {
    write(folder + "governor", std::string(governor) + "\n");
    write(folder + "cur_freq", std::string(now) + "\n");
    write(folder + "available_frequencies", "528000000 1068000000 2112000000\n");
  }

  const Check& found(std::string_view subject) {
    checks_.clear();
    ServeConfig config;
    config.engine.model = root_.path("model.rkllm");
    config.engine.rkllm_library = root_.path("librkllmrt.so");
    check_npu(checks_, config, root_.path());
    const auto at = std::ranges::find(checks_, subject, &Check::subject);
    static const Check kNone{};
    return at == checks_.end() ? kNone : *at;
  }

  test::TemporaryDirectory root_;
  Checks checks_;
};

TEST_F(DoctorNpuTest, AGoodBoardIsOk) {
  write_board();
  EXPECT_EQ(found("board").status, Status::ok);
  EXPECT_EQ(found("board").finding, "Radxa ROCK 5B, rk3588");
  EXPECT_EQ(found("NPU driver").finding, "RKNPU driver: v0.9.8");
  EXPECT_THAT(found("NPU load").finding, HasSubstr("Core0: 23%"));
  EXPECT_EQ(found("clock").status, Status::ok);
  EXPECT_EQ(found("clock").finding, "at its highest: memory, NPU, CPU 4 and on");
  EXPECT_THAT(found("speed").finding, HasSubstr("32.9 tokens/s"));
}

TEST_F(DoctorNpuTest, AVocabularyLetsAnswersFollowAGrammar) {
  EXPECT_EQ(found("vocabulary").status, Status::note);
  EXPECT_THAT(found("vocabulary").finding, HasSubstr("tokenizer.json; so no grammar is taken"));
  write("tokenizer_config.json", R"({"eos_token":"b"})");
  write("tokenizer.json", R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{"a":0,"b":1}}})");
  EXPECT_EQ(found("vocabulary").status, Status::ok);
  EXPECT_THAT(found("vocabulary").finding, HasSubstr("2 tokens; answers can be held"));
}

TEST_F(DoctorNpuTest, AClockThatIsLowIsNamedWithItsMend) {
  write_board();
  write_clock("sys/class/devfreq/dmc/", "dmc_ondemand", "528000000");
  EXPECT_EQ(found("clock").status, Status::warn);
  EXPECT_THAT(found("clock").finding, HasSubstr("that of the memory follows"));
  EXPECT_EQ(found("clock").fix, "As root: echo performance > /sys/class/devfreq/dmc/governor");
  write_clock("sys/class/devfreq/dmc/", "userspace", "528000000");
  EXPECT_EQ(found("clock").status, Status::warn) << "fixed, and low";
}

TEST_F(DoctorNpuTest, ADriverIsNeededAndNotEveryOneIsGood) {
  EXPECT_EQ(found("NPU driver").status, Status::fail);
  write("sys/bus/platform/drivers/RKNPU/bind", "");
  EXPECT_EQ(found("NPU driver").status, Status::note);
  write("sys/bus/platform/drivers/rocket/bind", "");
  EXPECT_EQ(found("NPU driver").status, Status::fail);
  EXPECT_THAT(found("NPU driver").finding, HasSubstr("rocket"));
}

TEST_F(DoctorNpuTest, AnotherMachineHasNoNpu) {
  write("proc/device-tree/model", "Raspberry Pi 5");
  write("proc/device-tree/compatible", "raspberrypi,5");
  EXPECT_EQ(found("board").status, Status::fail);
  EXPECT_THAT(found("board").finding, HasSubstr("Raspberry Pi 5 has no NPU"));
}

TEST_F(DoctorNpuTest, TheModelAndTheRuntimeMustBeThere) {
  EXPECT_EQ(found("model").status, Status::fail);
  EXPECT_EQ(found("NPU runtime").status, Status::fail);
  write("model.rkllm", "model");
  write("librkllmrt.so", "no library");
  EXPECT_EQ(found("model").status, Status::ok);
  EXPECT_THAT(found("NPU runtime").finding, HasSubstr("is no shared library"));
}

}  // namespace
}  // namespace sluice
