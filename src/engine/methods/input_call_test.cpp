#include "engine/methods/input_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/methods/function_table.hpp"
#include "engine/methods/run_call.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<RunCall> decoded(std::string_view params) {
  return decode_run_call(parse_json(params).value().as_object());
}

/// The input of a run; null after an error.
std::shared_ptr<const ModelInput> input_of(const std::string& input) {
  const Result<RunCall> call = decoded(R"({"input":)" + input + "}");
  EXPECT_TRUE(call) << call.error().message;
  return call ? call->request.input : nullptr;
}

TEST(InputCall, ReadsTokens) {
  for (const std::string_view ids : {"[1,2.0,3]", R"("AQAAAAIAAAADAAAA")"}) {
    const auto input = input_of(R"({"input_type":"RKLLM_INPUT_TOKEN","token_input":{"input_ids":)" +
                                std::string(ids) + R"(,"n_tokens":3}})");
    EXPECT_THAT(std::get<TokenIds>(*input), ElementsAre(1, 2, 3));
  }
}

TEST(InputCall, ReadsEmbeddings) {
  for (const std::string_view embed : {"[1,-0.5]", R"("AACAPwAAAL8=")"}) {
    const auto input = input_of(R"({"input_type":2,"role":"user","embed_input":{"embed":)" +
                                std::string(embed) + R"(,"n_tokens":2}})");
    const auto& read = std::get<EmbedData>(*input);
    EXPECT_THAT(read.embed, ElementsAre(1, -0.5F));
    EXPECT_EQ(read.n_tokens, 2U);
  }
}

TEST(InputCall, ReadsTheLargestFloatAsOthersWriteIt) {
  // The shortest text for it is above it.
  const auto input = input_of(
      R"({"input_type":2,"embed_input":{"embed":[3.4028235e38,-3.4028235e38],"n_tokens":1}})");
  ASSERT_TRUE(input);
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_THAT(std::get<EmbedData>(*input).embed, ElementsAre(kLargest, -kLargest));
}

TEST(InputCall, ReadsImagesAsEachVersionHasThem) {
  const auto flat =
      input_of(R"({"input_type":3,"multimodal_input":{"prompt":"<image>?","image_embed":[1,2],)"
               R"("n_image_tokens":2,"image_width":3}})");
  const auto& one = std::get<MultiModalData>(*flat);
  EXPECT_EQ(one.prompt, "<image>?");
  EXPECT_EQ(one.n_image, 1U);
  EXPECT_EQ(one.image_width, 3U);
  const auto nested = input_of(
      R"({"input_type":3,"multimodal_input":{"prompt":"?","image":{"image_embed":[1,2,3,4],)"
      R"("n_image_tokens":1,"n_image":2,"image_start":"<","image_end":">","image_height":9}}})");
  const auto& two = std::get<MultiModalData>(*nested);
  EXPECT_EQ(two.n_image * two.n_image_tokens, 2U);
  EXPECT_EQ(two.image_start + two.image_content + two.image_end, "<>");
  EXPECT_EQ(two.image_height, 9U);
  EXPECT_EQ(bytes_of(*nested), 4 * sizeof(float) + 3);
}

TEST(InputCall, ReadsModes) {
  for (const auto& [mode, yields] :
       {std::pair("0", Yield::text), std::pair("1", Yield::hidden_states),
        std::pair(R"("RKLLM_INFER_GET_LOGITS")", Yield::logits)}) {
    const auto call =
        decoded(R"({"prompt":"a","infer_params":{"mode":)" + std::string(mode) + "}}");
    ASSERT_TRUE(call);
    EXPECT_EQ(call->request.yields, yields);
  }
}

TEST(InputCall, NamesWhatIsWrong) {
  const std::string token = R"("input_type":1,"token_input":)";
  const std::string embed = R"("input_type":2,"embed_input":)";
  const std::string images = R"("input_type":3,"multimodal_input":)";
  for (const auto& [input, why] : std::vector<std::pair<std::string, std::string>>{
           {R"("input_type":1)", "token_input must be an object"},
           {R"("input_type":2,"embed_input":[])", "embed_input must be an object"},
           {R"("input_type":true)", "input_type must be RKLLM_INPUT_PROMPT (0)"},
           {token + "{}", "input_ids must be an array"},
           {token + R"({"input_ids":[]})", "input_ids must be 1 to 16384 tokens"},
           {token + R"({"input_ids":[-1]})", "not negative"},
           {token + R"({"input_ids":[2147483648]})", "input_ids must be an array"},
           {token + R"({"input_ids":[1.5]})", "input_ids must be an array"},
           {token + R"({"input_ids":"AQA="})", "input_ids must be an array"},
           {token + R"({"input_ids":[1],"n_tokens":2})", "n_tokens must be an integer from 1 to 1"},
           {R"("role":"tool",)" + token + R"({"input_ids":[1]})", R"(role must be "user")"},
           {R"("prompt_input":"a",)" + token + R"({"input_ids":[1]})", "a prompt goes with"},
           {embed + R"({"embed":[1]})", "n_tokens must be an integer from 1 to 16384"},
           {embed + R"({"embed":[1],"n_tokens":0})", "n_tokens must be"},
           {embed + R"({"embed":[1],"n_tokens":16385})", "n_tokens must be"},
           {embed + R"({"embed":[1,2,3],"n_tokens":2})", "as many numbers for each of its 2"},
           {embed + R"({"embed":[],"n_tokens":1})", "as many numbers for each"},
           {embed + R"({"embed":"AADAfw==","n_tokens":1})", "embed must be finite"},
           {embed + R"({"embed":"AACA/w==","n_tokens":1})", "embed must be finite"},
           {embed + R"({"embed":[1e39],"n_tokens":1})", "embed must be an array"},
           {embed + R"({"embed":[3.4028236e38],"n_tokens":1})", "embed must be an array"},
           {embed + R"({"embed":["1"],"n_tokens":1})", "embed must be an array"},
           {images + R"({"prompt":"a","image_embed":[1]})", "n_image_tokens must be an integer"},
           {images + R"({"image_embed":[1],"n_image_tokens":1})", "prompt must be a text"},
           {images + R"({"prompt":"a\u0000","image_embed":[1],"n_image_tokens":1})", "U+0000"},
           {images + R"({"prompt":"a","image":3})", "image must be an object"},
           {images + R"({"prompt":"a","video":{}})", "video is not passed on"},
           {images + R"({"prompt":"a","image_embed":[1],"n_image":129,"n_image_tokens":128})",
            "n_image_tokens must be at most 16384 for all images"},
           {images + R"({"prompt":"a","image_embed":[1],"n_image_tokens":1,"image_width":-1})",
            "image_width must be an integer from 0 to 65536"}}) {
    const auto call = decoded("{\"input\":{" + input + "}}");
    ASSERT_FALSE(call) << input;
    EXPECT_EQ(call.error().code, kInvalidParams);
    EXPECT_THAT(call.error().message, HasSubstr(why)) << input;
  }
  EXPECT_THAT(decoded(R"({"prompt":"a","infer_params":{"mode":"x"}})").error().message,
              HasSubstr("mode must be RKLLM_INFER_GENERATE (0), RKLLM_INFER_GET_LAST"));
  EXPECT_THAT(
      decoded(R"({"prompt":"a","input":{)" + token + R"({"input_ids":[1]}}})").error().message,
      HasSubstr("a prompt goes with"));
}

TEST(InputCall, KnowsTheBytesThatMayBe) {
  std::size_t most = ModelInputLimits::kBytes / 3 * 4 + 8;
  const std::string long_text(most / 4 * 4, 'A');
  const auto call = decoded(R"({"input":{"input_type":2,"embed_input":{"n_tokens":1,"embed":")" +
                            long_text + "\"}}}");
  ASSERT_FALSE(call);
  EXPECT_THAT(call.error().message, HasSubstr("must be at most 67108864 bytes"));
}

TEST(RunSchema, HasTheStructsOfTheCInterface) {
  const Result<json::value> schema = parse_json(run_schema());
  ASSERT_TRUE(schema);
  const json::object& properties = schema->as_object().at("properties").as_object();
  EXPECT_TRUE(properties.contains("prompt"));
  EXPECT_TRUE(properties.contains("infer_params"));
  EXPECT_TRUE(properties.at("input").at("properties").as_object().contains("embed_input"));
}

}  // namespace
}  // namespace sluice
