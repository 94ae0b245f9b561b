#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "cli/options/exit_code.hpp"
#include "cli/options/serve_settings.hpp"
#include "cli/program.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string printed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_program(static_cast<int>(arguments.size()), arguments.data()), kExitOk);
  return ::testing::internal::GetCapturedStdout();
}

TEST(Completion, KnowsEverySettingInEveryShell) {
  const std::string bash = printed({"completion", "bash"});
  const std::string zsh = printed({"completion", "zsh"});
  const std::string fish = printed({"completion", "fish"});
  for (const Setting& setting : serve_settings()) {
    const std::string flag(setting.flag);
    EXPECT_THAT(bash, HasSubstr(flag));
    EXPECT_THAT(zsh, HasSubstr("'*" + flag));
    EXPECT_THAT(fish, HasSubstr(" -l " + flag.substr(2) + " "));
  }
  EXPECT_THAT(zsh, HasSubstr(":value:(llama synthetic)"));
  EXPECT_THAT(fish, HasSubstr("-l engine -x -a 'llama synthetic'"));
}

TEST(Completion, OffersTheOptionsOfDoctorThatItsHelpLeavesOut) {
  EXPECT_THAT(printed({"completion", "fish"}),
              HasSubstr("'__fish_seen_subcommand_from doctor; and not __fish_seen_subcommand_from "
                        "man' -l max-body"));
}

TEST(Manual, HasAPageForEveryCommand) {
  const std::string main = printed({"man"});
  EXPECT_THAT(main, ::testing::StartsWith(".TH SLUICE 1 "));
  EXPECT_THAT(main, HasSubstr(".SH EXIT STATUS\n.TP\n0\ndone.\n"));
  std::istringstream commands(printed({"man", "--list"}));
  int count = 0;
  for (std::string command; std::getline(commands, command); ++count) {
    std::string title = "sluice-" + command;
    for (std::size_t at = 0; (at = title.find('-', at)) != std::string::npos; at += 2) {
      title.insert(at, 1, '\\');
    }
    EXPECT_THAT(main, HasSubstr("\\fB" + title + "\\fR(1)"));
    const std::string page = printed({"man", command.c_str()});
    EXPECT_THAT(page, HasSubstr(".SH NAME\n" + title + " \\- "));
    EXPECT_THAT(page, HasSubstr(".SH SEE ALSO\n\\fBsluice\\fR(1), "));
  }
  EXPECT_GE(count, 9);
}

TEST(Manual, ExplainsEverySetting) {
  const std::string page = printed({"man", "serve"});
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-port\\fR \\fIN\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SS Connections\n"));
}

}  // namespace
}  // namespace sluice
