#include "client/authorization/token_store.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "client/authorization/file_lock.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxTokenFile = std::size_t{4} << 20U;
constexpr std::int64_t kTokenFileVersion = 1;

/// A member of a record and where it is kept.
template <class Record>
struct TextMember {
  std::string_view name;
  std::string Record::* place;
};
template <class Record>
struct TimeMember {
  std::string_view name;
  std::int64_t Record::* place;
};

constexpr std::array kTokenTexts = {
    TextMember<StoredToken>{"server", &StoredToken::server},
    TextMember<StoredToken>{"issuer", &StoredToken::issuer},
    TextMember<StoredToken>{"resource", &StoredToken::resource},
    TextMember<StoredToken>{"grant", &StoredToken::grant},
    TextMember<StoredToken>{"client_id", &StoredToken::client_id},
    TextMember<StoredToken>{"access_token", &StoredToken::access_token},
    TextMember<StoredToken>{"token_type", &StoredToken::token_type},
    TextMember<StoredToken>{"refresh_token", &StoredToken::refresh_token},
    TextMember<StoredToken>{"scope", &StoredToken::scope},
    TextMember<StoredToken>{"requested_scope", &StoredToken::requested_scope},
    TextMember<StoredToken>{"token_endpoint", &StoredToken::token_endpoint},
    TextMember<StoredToken>{"revocation_endpoint", &StoredToken::revocation_endpoint},
    TextMember<StoredToken>{"auth_method", &StoredToken::auth_method},
    TextMember<StoredToken>{"dpop_key", &StoredToken::dpop_key}};
constexpr std::array kTokenTimes = {
    TimeMember<StoredToken>{"issued_at", &StoredToken::issued_at},
    TimeMember<StoredToken>{"expires_at", &StoredToken::expires_at}};
constexpr std::array kClientTexts = {
    TextMember<StoredClient>{"issuer", &StoredClient::issuer},
    TextMember<StoredClient>{"client_id", &StoredClient::client_id},
    TextMember<StoredClient>{"client_secret", &StoredClient::client_secret},
    TextMember<StoredClient>{"auth_method", &StoredClient::auth_method},
    TextMember<StoredClient>{"redirect_uri", &StoredClient::redirect_uri}};
constexpr std::array kClientTimes = {
    TimeMember<StoredClient>{"expires_at", &StoredClient::expires_at}};

template <class Record>
json::object write_record(const Record& record, const auto& texts, const auto& times) {
  json::object out;
  for (const auto& member : texts) {
    if (!(record.*member.place).empty()) out[member.name] = record.*member.place;
  }
  for (const auto& member : times) {
    if (record.*member.place != 0) out[member.name] = record.*member.place;
  }
  return out;
}

template <class Record>
Result<std::vector<Record>> read_records(const json::object& file, std::string_view name,
                                         const auto& texts, const auto& times) {
  std::vector<Record> out;
  const json::value* const value = file.if_contains(name);
  if (value == nullptr) return out;
  const json::array* const array = value->if_array();
  if (array == nullptr) return fail(kBadRequest, "'" + std::string(name) + "' is not an array");
  for (const json::value& each : *array) {
    const json::object* const object = each.if_object();
    if (object == nullptr) {
      return fail(kBadRequest, "'" + std::string(name) + "' has an entry that is not an object");
    }
    Record& record = out.emplace_back();
    for (const auto& member : texts) record.*member.place = text_at(*object, member.name);
    for (const auto& member : times) {
      const json::value* const time = object->if_contains(member.name);
      if (time != nullptr && time->is_int64()) record.*member.place = time->get_int64();
    }
  }
  return out;
}

template <class Record>
void put_record(std::vector<Record>& records, Record record, std::size_t most,
                const auto& is_same) {
  std::erase_if(records, is_same);
  if (records.size() >= most) records.erase(records.begin());
  records.push_back(std::move(record));
}

std::unexpected<Error> file_error(int code, const std::string& path, std::string_view why) {
  return fail(code, "The token file " + path + ": " + std::string(why));
}
std::unexpected<Error> system_error_of(const std::string& path, std::string_view what) {
  const int error = errno;
  return file_error(kInternalServerError, path,
                    std::string(what) + " fails: " + std::strerror(error));
}

bool write_whole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace

void StoredCredentials::put(StoredToken token) {
  const StoredToken key = token;
  put_record(tokens, std::move(token), kMaxTokens, [&key](const StoredToken& other) {
    return other.server == key.server && other.issuer == key.issuer &&
           other.resource == key.resource && other.grant == key.grant &&
           other.client_id == key.client_id;
  });
}

void StoredCredentials::put(StoredClient client) {
  const StoredClient key = client;
  put_record(clients, std::move(client), kMaxClients, [&key](const StoredClient& other) {
    return other.issuer == key.issuer && other.redirect_uri == key.redirect_uri;
  });
}

const StoredToken* StoredCredentials::find(std::string_view server, std::string_view grant,
                                           std::string_view client_id) const {
  const auto is_wanted = [&](const StoredToken& token) {
    return token.server == server && (grant.empty() || token.grant == grant) &&
           (client_id.empty() || token.client_id == client_id);
  };
  const auto found = std::find_if(tokens.rbegin(), tokens.rend(), is_wanted);
  return found == tokens.rend() ? nullptr : &*found;
}

const StoredClient* StoredCredentials::find_client(
    std::string_view issuer, std::int64_t now,
    const std::function<bool(const StoredClient&)>& is_wanted) const {
  const auto found =
      std::find_if(clients.rbegin(), clients.rend(), [&](const StoredClient& client) {
        return client.issuer == issuer && (client.expires_at == 0 || client.expires_at > now) &&
               is_wanted(client);
      });
  return found == clients.rend() ? nullptr : &*found;
}

const StoredClient* client_of_token(const StoredCredentials& stored, const StoredToken& token,
                                    std::int64_t now) {
  return stored.find_client(token.issuer, now, [&token](const StoredClient& client) {
    return client.client_id == token.client_id;
  });
}

Result<StoredCredentials> parse_credentials(std::string_view text) {
  const Result<json::value> parsed = parse_json(text);
  const json::object* const file = parsed ? parsed->if_object() : nullptr;
  if (file == nullptr) return fail(kBadRequest, "it is not a JSON object");
  const json::value* const version = file->if_contains("version");
  if (version == nullptr || !version->is_int64() || version->get_int64() != kTokenFileVersion) {
    return fail(kBadRequest, "its 'version' is not 1, so another version of sluice wrote it");
  }
  StoredCredentials out;
  auto tokens = read_records<StoredToken>(*file, "tokens", kTokenTexts, kTokenTimes);
  if (!tokens) return std::unexpected(tokens.error());
  out.tokens = *std::move(tokens);
  auto clients = read_records<StoredClient>(*file, "clients", kClientTexts, kClientTimes);
  if (!clients) return std::unexpected(clients.error());
  out.clients = *std::move(clients);
  return out;
}

std::string to_text(const StoredCredentials& credentials) {
  json::array tokens;
  for (const StoredToken& token : credentials.tokens) {
    tokens.push_back(write_record(token, kTokenTexts, kTokenTimes));
  }
  json::array clients;
  for (const StoredClient& client : credentials.clients) {
    clients.push_back(write_record(client, kClientTexts, kClientTimes));
  }
  return to_json(json::object{{"version", kTokenFileVersion},
                              {"tokens", std::move(tokens)},
                              {"clients", std::move(clients)}}) +
         "\n";
}

Result<StoredCredentials> TokenStore::load() const {
  if (is_in_memory()) return memory_;
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) {
    if (errno == ENOENT) return StoredCredentials();
    return system_error_of(path_, "opening it");
  }
  struct stat about{};
  if (::fstat(file.get(), &about) != 0) return system_error_of(path_, "looking at it");
  if (!S_ISREG(about.st_mode)) return file_error(kBadRequest, path_, "it is not a regular file");
  if (about.st_uid != ::geteuid()) {
    return file_error(kBadRequest, path_, "it belongs to another user; choose another file");
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return file_error(
        kBadRequest, path_,
        "others can read it, so its tokens are no longer secret: delete it and log in "
        "again, or run chmod 600 on it if you trust them");
  }
  std::string text;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t size = ::read(file.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error_of(path_, "reading it");
    if (size == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(size));
    if (text.size() > kMaxTokenFile) return file_error(kBadRequest, path_, "it is too long");
  }
  Result<StoredCredentials> read = parse_credentials(text);
  if (!read) {
    return file_error(kBadRequest, path_,
                      read.error().message + "; delete it or choose another, and log in again");
  }
  return read;
}

Result<void> TokenStore::save(const StoredCredentials& credentials) {
  if (is_in_memory()) {
    memory_ = credentials;
    return {};
  }
  make_private_folder(path_);
  // Under the lock there is one writer. So what lies there is of one that was killed.
  const std::string fresh = path_ + ".new";
  ::unlink(fresh.c_str());
  Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  if (!file) return system_error_of(path_, "writing beside it");
  const bool is_written = write_whole(file.get(), to_text(credentials)) &&
                          ::fsync(file.get()) == 0 && ::rename(fresh.c_str(), path_.c_str()) == 0;
  if (is_written) return {};
  auto error = system_error_of(path_, "replacing it");
  ::unlink(fresh.c_str());
  return error;
}

void change_credentials(Executor& loop, std::shared_ptr<TokenStore> store,
                        std::function<void(StoredCredentials&)> change,
                        std::function<void(Result<void>)> done) {
  // Nobody holds this lock for longer than it takes to write a file.
  constexpr Duration kPatience = std::chrono::seconds(10);
  std::string lock = store->is_in_memory() ? std::string() : store->path() + ".lock";
  FileLock::acquire(loop, std::move(lock), kPatience,
                    [store = std::move(store), change = std::move(change),
                     done = std::move(done)](const Result<FileLock>& held) {
                      if (!held) return done(std::unexpected(held.error()));
                      Result<StoredCredentials> credentials = store->load();
                      if (!credentials) return done(std::unexpected(credentials.error()));
                      change(*credentials);
                      done(store->save(*credentials));
                    });
}

}  // namespace sluice
