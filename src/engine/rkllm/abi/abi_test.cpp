#include "engine/rkllm/abi/abi.hpp"

#include <gtest/gtest.h>
#include <string_view>

namespace sluice::rkllm {
namespace {

TEST(RkllmAbi, IsThatOfAVersion) {
  for (const auto& [version, abi] :
       {std::pair("1.1.0", "1.1"), std::pair("1.1.4", "1.1"), std::pair("1.2.0", "1.2.0"),
        std::pair("1.2.1", "1.2.1"), std::pair("1.2.3", "1.2.1"), std::pair("1.3.0", "1.3.0")}) {
    const AbiFacts* const found = abi_of_version(version);
    ASSERT_NE(found, nullptr) << version;
    EXPECT_EQ(found->name, abi);
    EXPECT_EQ(find_abi(abi), found);
    EXPECT_EQ(&facts_of(found->abi), found);
  }
}

TEST(RkllmAbi, IsNotGuessed) {
  for (const std::string_view version :
       {"", "1.0.1", "1.2", "1.2.1b1", "1.2.4", "1.3.1", "2.0.0"}) {
    EXPECT_EQ(abi_of_version(version), nullptr) << version;
  }
  EXPECT_EQ(find_abi("1.2"), nullptr);
}

TEST(RkllmAbi, HasParametersOfThePublishedSizes) {
  ASSERT_EQ(all_abis().size(), 4U);
  EXPECT_EQ(all_abis()[0].param_bytes, 200U);
  EXPECT_EQ(all_abis()[1].param_bytes, 208U);
  EXPECT_EQ(all_abis()[2].param_bytes, 208U);
  EXPECT_EQ(all_abis()[3].param_bytes, 184U);
}

}  // namespace
}  // namespace sluice::rkllm
