#include "client/authorization/telling_authorizer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace sluice {
namespace {

class TellingAuthorizer final : public RequestAuthorizer {
 public:
  TellingAuthorizer(std::shared_ptr<RequestAuthorizer> authorizer,
                    std::shared_ptr<KnownSecrets> secrets)
      : authorizer_(std::move(authorizer)), secrets_(std::move(secrets)) {}

  void authorize(std::string_view method, const Url& url, Authorized done) override {
    authorizer_->authorize(
        method, url,
        [secrets = secrets_, done = std::move(done)](Result<RequestAuthorization> made) mutable {
          if (made) tell(*secrets, made->headers);
          done(std::move(made));
        });
  }
  bool on_refused(const HttpReplyHead& reply, std::uint64_t credential, Handled done) override {
    return authorizer_->on_refused(reply, credential, std::move(done));
  }
  void on_reply(const HttpReplyHead& reply) override { authorizer_->on_reply(reply); }
  void on_address(const Endpoint& endpoint) override { authorizer_->on_address(endpoint); }

 private:
  static void tell(KnownSecrets& secrets, const HttpHeaderList& headers) {
    for (const auto& [name, value] : headers) {
      // The token, whatever its kind. A proof of possession is of one request.
      if (!equals_ignoring_case(name, "Authorization")) continue;
      const std::string token = value.substr(value.rfind(' ') + 1);
      // A shorter one may be a word.
      constexpr std::size_t kShortestToken = 8;
      if (token.size() >= kShortestToken) secrets.add({token});
    }
  }

  std::shared_ptr<RequestAuthorizer> authorizer_;
  std::shared_ptr<KnownSecrets> secrets_;
};

}  // namespace

std::shared_ptr<RequestAuthorizer> telling_authorizer(std::shared_ptr<RequestAuthorizer> authorizer,
                                                      std::shared_ptr<KnownSecrets> secrets) {
  return std::make_shared<TellingAuthorizer>(std::move(authorizer), std::move(secrets));
}

}  // namespace sluice
