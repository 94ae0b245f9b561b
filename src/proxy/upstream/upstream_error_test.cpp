#include "proxy/upstream/upstream_error.hpp"

#include <gtest/gtest.h>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

TEST(UpstreamErrorTest, KeepsTheStatusAndWhatElseIsKnown) {
  const Error answer =
      upstream_error("notes", {401, "give a token", R"({"wwwAuthenticate":"Bearer"})"});
  EXPECT_EQ(answer.code, kInternalError);
  EXPECT_EQ(answer.message, "The server notes: give a token");
  EXPECT_EQ(answer.data, R"({"wwwAuthenticate":"Bearer","upstreamStatus":401})");
  EXPECT_EQ(upstream_status(answer), 401);
}

TEST(UpstreamErrorTest, LeavesWhatTheServerHasAnswered) {
  const Error answer = upstream_error("notes", {kInvalidParams, "not like this", "[1]"});
  EXPECT_EQ(answer.code, kInvalidParams);
  EXPECT_EQ(answer.message, "not like this");
  EXPECT_EQ(answer.data, "[1]");
}

TEST(UpstreamErrorTest, AFailureToOpenASessionIsNeverTheAnswerToARequest) {
  const Error refused = session_error("notes", {kMethodNotFound, "go away", R"({"a":1})"});
  EXPECT_EQ(refused.code, kInternalError);
  EXPECT_EQ(refused.message, "The server notes: go away");
  EXPECT_EQ(refused.data, R"({"a":1})");
  EXPECT_EQ(upstream_status(refused), std::nullopt);
  const Error silent = session_error("notes", {kTimedOut, "it is silent", ""});
  EXPECT_EQ(silent.code, kInternalError);
  EXPECT_EQ(upstream_status(silent), 504);
  EXPECT_EQ(upstream_status(session_error("notes", {401, "give a token", ""})), 401);
}

TEST(UpstreamErrorTest, OtherErrorsHaveNoStatus) {
  for (const char* const data :
       {"", "no JSON", "[]", R"({"upstreamStatus":"401"})", R"({"upstreamStatus":-1})",
        R"({"upstreamStatus":1e99})", R"({"upstreamStatus":99999999999})"}) {
    EXPECT_EQ(upstream_status({kInternalError, "", data}), std::nullopt) << data;
  }
  EXPECT_EQ(upstream_status({kInvalidParams, "", R"({"upstreamStatus":401})"}), std::nullopt);
}

}  // namespace
}  // namespace sluice
