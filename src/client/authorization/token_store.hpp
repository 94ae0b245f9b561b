#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"

namespace sluice {

/// An access token and what is needed to renew it.
struct StoredToken {
  // Which it is: tokens are never used for another issuer, resource or server.
  std::string server = {};  // canonical_resource() of the MCP server
  std::string issuer = {};
  std::string resource = {};
  std::string grant = {};      // the name of a GrantKind
  std::string client_id = {};  // it was issued to

  std::string access_token = {};
  std::string token_type = {};           // "bearer" or "dpop"
  std::int64_t issued_at = 0;            // seconds since 1970
  std::int64_t expires_at = 0;           // the same; 0: unknown
  std::string refresh_token = {};        // empty: none
  std::string scope = {};                // that was granted
  std::string requested_scope = {};      // that was asked for
  std::string token_endpoint = {};       // that renews it
  std::string revocation_endpoint = {};  // empty: none
  std::string auth_method = {};          // of the client there
  std::string dpop_key = {};             // PEM of the key that it is bound to, or empty

  bool operator==(const StoredToken&) const = default;
};

/// A client that this program has registered with an authorization server. It is never shown to
/// another one (SEP-2352).
struct StoredClient {
  std::string issuer = {};
  std::string client_id = {};
  std::string client_secret = {};  // empty: none
  std::string auth_method = {};
  std::string redirect_uri = {};  // that was registered
  std::int64_t expires_at = 0;    // of the secret, seconds since 1970; 0: never

  bool operator==(const StoredClient&) const = default;
};

struct StoredCredentials {
  std::vector<StoredToken> tokens;    // the most recent last
  std::vector<StoredClient> clients;  // the same

  static constexpr std::size_t kMaxTokens = 1000;
  static constexpr std::size_t kMaxClients = 1000;

  /// Puts it in place of the one for the same server, issuer, resource, grant and client. The
  /// oldest goes if there are too many.
  void put(StoredToken token);
  /// Puts it in place of the one of the same issuer and redirect URI. Others stay, because tokens
  /// that were issued to them are renewed with their secrets.
  void put(StoredClient client);

  /// The most recent token of that server; of `grant` and `client_id` unless these are empty; or
  /// null.
  [[nodiscard]] const StoredToken* find(std::string_view server, std::string_view grant,
                                        std::string_view client_id) const;
  /// The most recent client for which `is_wanted` returns true of those that are registered with
  /// `issuer` and whose secret has not expired by `now` (seconds since 1970); or null.
  [[nodiscard]] const StoredClient* find_client(
      std::string_view issuer, std::int64_t now,
      const std::function<bool(const StoredClient&)>& is_wanted) const;

  bool operator==(const StoredCredentials&) const = default;
};

/// The registered client that `token` was issued to, as of find_client(); or null.
const StoredClient* client_of_token(const StoredCredentials& stored, const StoredToken& token,
                                    std::int64_t now);

/// Reads the text of a token file. Error: 400, with what is wrong.
Result<StoredCredentials> parse_credentials(std::string_view text);
std::string to_text(const StoredCredentials& credentials);

/// Where credentials are kept: a file that only its owner can read, or this object's memory. Each
/// function reads or writes the whole; change_credentials() is for changes.
class TokenStore {
 public:
  /// `path` empty: memory.
  explicit TokenStore(std::string path) : path_(std::move(path)) {}

  /// Nothing is stored if there is no file. Errors: 400, the file is another user's, others can
  /// read it, or it is none of this program's; 500, the system refuses. They name the file and what
  /// to do.
  [[nodiscard]] Result<StoredCredentials> load() const;
  /// Replaces the file atomically, with mode 0600, and makes its folder with mode 0700. Error: 500.
  Result<void> save(const StoredCredentials& credentials);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_in_memory() const { return path_.empty(); }

 private:
  std::string path_;
  StoredCredentials memory_;
};

/// Changes what is stored, while no other thread or process does: reads it, calls `change`, and
/// writes it. `done` is called once, never from within this function. Errors: of load(), save() and
/// FileLock::acquire().
void change_credentials(Executor& loop, std::shared_ptr<TokenStore> store,
                        std::function<void(StoredCredentials&)> change,
                        std::function<void(Result<void>)> done);

}  // namespace sluice
