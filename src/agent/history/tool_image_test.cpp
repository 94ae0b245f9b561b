#include "agent/history/tool_image.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "core/text/base64.hpp"

namespace sluice {
namespace {

json::object image_block(std::string_view mime_type, std::string_view bytes) {
  std::string data;
  append_base64(data, bytes);
  return {{"type", "image"}, {"mimeType", mime_type}, {"data", data}};
}

TEST(ToolImage, IsWhatModelsTake) {
  for (const auto& [type, bytes] :
       {std::pair("image/png", "\x89PNG\r\n\x1a\nrest"),
        std::pair("image/jpeg", "\xFF\xD8\xFF rest"), std::pair("image/gif", "GIF89a rest"),
        std::pair("image/webp", "RIFF\x01\x01\x01\x01WEBP rest")}) {
    const json::object block = image_block(type, bytes);
    const auto image = image_of_block(block);
    ASSERT_TRUE(image) << type;
    EXPECT_EQ(image->mime_type, type);
    EXPECT_EQ(*image->base64, block.at("data").as_string());
  }
  const auto image = image_of_block(image_block("image/jpg", "GIF89a rest"));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->mime_type, "image/gif") << "whatever the server calls it";
}

TEST(ToolImage, IsNothingThatAModelsServerWouldRefuse) {
  EXPECT_FALSE(image_of_block(image_block("image/webp", "RIFF\x01\x01\x01\x01WAVE")));
  EXPECT_FALSE(image_of_block(image_block("image/svg+xml", "<svg/>")));
  EXPECT_FALSE(image_of_block(image_block("image/png", "")));
  json::object block = image_block("image/gif", "GIF89a");
  block["type"] = "audio";
  EXPECT_FALSE(image_of_block(block));
  block["type"] = "image";
  block["data"] = "R0lGODlh\n";
  EXPECT_FALSE(image_of_block(block));
  block["data"] = 1;
  EXPECT_FALSE(image_of_block(block));
  EXPECT_FALSE(image_of_block({}));
  EXPECT_TRUE(image_of_block(image_block("image/gif", "GIF8" + std::string((6U << 20U) - 4, 'a'))));
  EXPECT_FALSE(image_of_block(image_block("image/gif", "GIF8" + std::string(7U << 20U, 'a'))));
}

TEST(ToolImage, OfAResultAreTheLast) {
  json::object result;
  EXPECT_TRUE(images_of_result(result, 2).empty());
  result["content"] = "none";
  EXPECT_TRUE(images_of_result(result, 2).empty());
  result["content"] = {image_block("image/gif", "GIF8 one"),
                       {{"type", "text"}, {"text", "two"}},
                       image_block("image/gif", "GIF8 three"),
                       4,
                       image_block("image/gif", "GIF8 five")};
  const auto images = images_of_result(result, 2);
  ASSERT_EQ(images.size(), 2U);
  EXPECT_EQ(decode_base64(*images[0].base64), "GIF8 three");
  EXPECT_EQ(decode_base64(*images[1].base64), "GIF8 five");
  EXPECT_TRUE(images_of_result(result, 0).empty());
}

}  // namespace
}  // namespace sluice
