#include "client/authorization/metadata.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts(const std::vector<Url>& urls) {
  std::vector<std::string> out;
  for (const Url& url : urls) out.push_back(url.to_string());
  return out;
}

TEST(MetadataTest, OfAResourceIsAtItsPathFirst) {
  EXPECT_THAT(texts(resource_metadata_urls(*parse_url("https://example.com/public/mcp?x=1"))),
              ElementsAre("https://example.com/.well-known/oauth-protected-resource/public/mcp",
                          "https://example.com/.well-known/oauth-protected-resource"));
  EXPECT_THAT(texts(resource_metadata_urls(*parse_url("https://example.com"))),
              ElementsAre("https://example.com/.well-known/oauth-protected-resource"));
}

TEST(MetadataTest, OfAnIssuerHasThreePlaces) {
  EXPECT_THAT(texts(*server_metadata_urls("https://auth.example.com/tenant1")),
              ElementsAre("https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                          "https://auth.example.com/.well-known/openid-configuration/tenant1",
                          "https://auth.example.com/tenant1/.well-known/openid-configuration"));
  EXPECT_THAT(texts(*server_metadata_urls("https://auth.example.com/")),
              ElementsAre("https://auth.example.com/.well-known/oauth-authorization-server",
                          "https://auth.example.com/.well-known/openid-configuration"));
  for (const char* wrong :
       {"auth.example.com", "https://a/?q", "https://a/#f", "wss://a", "file:///"}) {
    EXPECT_FALSE(server_metadata_urls(wrong)) << wrong;
  }
}

// python-sdk#1919, copilot-cli#4606, atlassian-mcp-server#148.
TEST(MetadataTest, AnIssuerMayHaveARootSlashOrNot) {
  EXPECT_TRUE(is_same_issuer("https://accounts.google.com", "https://accounts.google.com/"));
  EXPECT_TRUE(is_same_issuer("https://a/", "https://a"));
  EXPECT_FALSE(is_same_issuer("https://a/tenant/", "https://a/tenant"));
  EXPECT_FALSE(is_same_issuer("https://a", "https://a/tenant"));
  EXPECT_FALSE(is_same_issuer("https://A", "https://a"));
  EXPECT_FALSE(is_same_issuer("https://a:443", "https://a"));
}

TEST(MetadataTest, AResourceIsTheServerOrAboveIt) {
  const Url server = *parse_url("https://example.com/a/mcp");
  for (const char* good :
       {"https://example.com/a/mcp", "https://example.com/a/mcp/", "https://example.com",
        "https://example.com/", "https://EXAMPLE.com/a"}) {
    EXPECT_TRUE(is_resource_of(good, server)) << good;
  }
  for (const char* bad : {"https://example.com/a/m", "https://example.com/b", "http://example.com",
                          "https://example.com:8443", "https://evil.example.com/a/mcp",
                          "https://example.com/a/mcp/deeper", "https://example.com#a", "mcp"}) {
    EXPECT_FALSE(is_resource_of(bad, server)) << bad;
  }
  EXPECT_EQ(canonical_resource(server), "https://example.com/a/mcp");
  EXPECT_EQ(canonical_resource(*parse_url("https://Example.com:443/?q=1")), "https://example.com");
}

TEST(MetadataTest, ReadsDocuments) {
  const auto resource = parse_resource_metadata(
      R"({"resource":"https://r","authorization_servers":["https://a",7],"scopes_supported":["x"],
          "dpop_bound_access_tokens_required":true})");
  ASSERT_TRUE(resource);
  EXPECT_THAT(resource->authorization_servers, ElementsAre("https://a"));
  EXPECT_TRUE(resource->wants_dpop);
  const auto server = parse_server_metadata(
      R"({"issuer":"https://a","token_endpoint":"https://a/t","scopes_supported":["offline_access"],
          "code_challenge_methods_supported":["S256"],"client_id_metadata_document_supported":true,
          "authorization_response_iss_parameter_supported":true,"extra":{}})");
  ASSERT_TRUE(server);
  EXPECT_TRUE(server->sends_iss);
  EXPECT_TRUE(server->takes_metadata_documents);
  EXPECT_THAT(server->challenge_methods, ElementsAre("S256"));
}

TEST(MetadataTest, SaysWhatIsWrongWithADocument) {
  EXPECT_THAT(parse_resource_metadata("<html>").error().message, HasSubstr("JSON"));
  EXPECT_THAT(parse_resource_metadata("{}").error().message, HasSubstr("'resource'"));
  EXPECT_THAT(parse_server_metadata("[]").error().message, HasSubstr("JSON"));
  EXPECT_THAT(parse_server_metadata(R"({"issuer":"https://a"})").error().message,
              HasSubstr("'token_endpoint'"));
}

}  // namespace
}  // namespace sluice
