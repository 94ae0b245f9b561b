#include "net/io/tls.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include "core/file_test_support.hpp"
#include "net/client/client_test_support.hpp"
#include "net/client/http_client.hpp"
#include "net/client/websocket_client.hpp"
#include "net/io/socket_io.hpp"
#include "net/loop/descriptor.hpp"
#include "net/server/http_server.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Ssl = std::unique_ptr<SSL, decltype(&SSL_free)>;

Key make_key() {
  return {EVP_EC_gen("P-256"), &EVP_PKEY_free};
}

/// A self-signed certificate for `names`.
Certificate make_certificate(EVP_PKEY* key, const char* names) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  for (const auto& [id, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                                  std::pair{NID_subject_alt_name, names}}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value);
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate.get(), key, EVP_sha256());
  return certificate;
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    write_key("key.pem", key.get());
    write_certificate("cert.pem", make_certificate(key.get(), "DNS:localhost").get());
  }

  [[nodiscard]] std::string path(const std::string& name) const { return directory.path(name); }

  void write_key(const std::string& name, EVP_PKEY* to_write, const char* passphrase = nullptr) {
    std::FILE* const file = std::fopen(path(name).c_str(), "w");
    PEM_write_PrivateKey(file, to_write, passphrase != nullptr ? EVP_aes_128_cbc() : nullptr,
                         reinterpret_cast<const unsigned char*>(passphrase),
                         passphrase != nullptr ? 6 : 0, nullptr, nullptr);
    std::fclose(file);
  }
  void write_certificate(const std::string& name, X509* certificate) {
    std::FILE* const file = std::fopen(path(name).c_str(), "w");
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }

  std::shared_ptr<TlsContext> server_context() {
    return TlsContext::server(path("cert.pem"), path("key.pem")).value();
  }

  Key key = make_key();
  test::TemporaryDirectory directory;
};

TEST_F(TlsTest, NamesTheFileThatItCannotUse) {
  const Key other = make_key();
  write_key("other.pem", other.get());
  write_key("locked.pem", key.get(), "secret");
  std::ofstream(path("junk.pem")) << "junk\n";
  for (const auto& [certificate, key_file, why] :
       {std::tuple{"missing.pem", "key.pem", "missing.pem"},
        {"junk.pem", "key.pem", "junk.pem"},
        {"cert.pem", "missing.pem", "missing.pem"},
        {"cert.pem", "junk.pem", "junk.pem"},
        {"cert.pem", "locked.pem", "locked.pem"},
        {"cert.pem", "other.pem", "does not belong to the certificate"}}) {
    const auto context = TlsContext::server(path(certificate), path(key_file));
    ASSERT_FALSE(context) << why;
    EXPECT_THAT(context.error().message, HasSubstr(why));
  }
  const auto client = TlsContext::client({.ca_file = path("missing.pem")});
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("missing.pem"));
}

/// A server and a client, connected in memory.
struct Pair {
  Pair(SSL_CTX* server_context, SSL_CTX* client_context)
      : server(SSL_new(server_context), &SSL_free), client(SSL_new(client_context), &SSL_free) {
    BIO* server_end = nullptr;
    BIO* client_end = nullptr;
    BIO_new_bio_pair(&server_end, 0, &client_end, 0);
    SSL_set_bio(server.get(), server_end, server_end);
    SSL_set_bio(client.get(), client_end, client_end);
    SSL_set_accept_state(server.get());
    SSL_set_connect_state(client.get());
  }

  bool shake_hands() {
    for (int i = 0; i < 10; ++i) {
      SSL_do_handshake(client.get());
      SSL_do_handshake(server.get());
      if (SSL_is_init_finished(client.get()) && SSL_is_init_finished(server.get())) {
        char byte = 0;
        SSL_read(client.get(), &byte, 1);  // receives the session ticket
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::string alpn() const {
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(server.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

  Ssl server;
  Ssl client;
};

TEST_F(TlsTest, AgreesOnHttp11) {
  const auto server = server_context();
  const auto client = TlsContext::client({.insecure = true}).value();
  Pair pair(server->native(), client->native());
  ASSERT_TRUE(pair.shake_hands());
  EXPECT_EQ(pair.alpn(), "http/1.1");

  Pair both(server->native(), client->native());
  static constexpr std::array<unsigned char, 12> kBoth = {2,   'h', '2', 8,   'h', 't',
                                                          't', 'p', '/', '1', '.', '1'};
  SSL_set_alpn_protos(both.client.get(), kBoth.data(), kBoth.size());
  ASSERT_TRUE(both.shake_hands());
  EXPECT_EQ(both.alpn(), "http/1.1");

  Pair h2(server->native(), client->native());
  SSL_set_alpn_protos(h2.client.get(), kBoth.data(), 3);
  EXPECT_FALSE(h2.shake_hands());
}

TEST_F(TlsTest, WantsTls12OrLater) {
  const auto server = server_context();
  const auto client = TlsContext::client({.insecure = true}).value();
  for (const auto& [version, accepted] :
       {std::pair{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}}) {
    Pair pair(server->native(), client->native());
    SSL_set_security_level(pair.client.get(), 0);
    SSL_set_min_proto_version(pair.client.get(), version);
    SSL_set_max_proto_version(pair.client.get(), version);
    EXPECT_EQ(pair.shake_hands(), accepted) << std::hex << version;
  }
}

TEST_F(TlsTest, ResumesSessions) {
  const auto server = server_context();
  const auto client = TlsContext::client({.insecure = true}).value();
  Pair first(server->native(), client->native());
  ASSERT_TRUE(first.shake_hands());
  EXPECT_FALSE(SSL_session_reused(first.server.get()));
  SSL_SESSION* const session = SSL_get1_session(first.client.get());
  Pair second(server->native(), client->native());
  SSL_set_session(second.client.get(), session);
  SSL_SESSION_free(session);
  ASSERT_TRUE(second.shake_hands());
  EXPECT_TRUE(SSL_session_reused(second.server.get()));
}

/// A client that sends what no HTTP client would.
class RawClient {
 public:
  RawClient(int socket, SSL_CTX* context) : ssl(SSL_new(context), &SSL_free), socket_(socket) {
    SSL_set_fd(ssl.get(), socket);
    SSL_set_connect_state(ssl.get());
  }

  /// `times` key updates (RFC 8446, section 4.6.3), then `bytes` as application data.
  std::string key_updates(int times, std::string_view bytes = {}) {
    BIO* const written = BIO_new(BIO_s_mem());
    SSL_set0_wbio(ssl.get(), written);
    for (int i = 0; i < times; ++i) {
      SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
      SSL_do_handshake(ssl.get());
    }
    if (!bytes.empty()) SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size()));
    char* data = nullptr;
    const long size = BIO_get_mem_data(written, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  Ssl ssl;

 private:
  int socket_;
};

/// A server's end and a client, connected by a socket pair.
class TransportTest : public TlsTest {
 protected:
  TransportTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    sockets = {Descriptor(ends[0]), Descriptor(ends[1])};
    io.emplace(sockets[0].get(), context.get());
    client.emplace(sockets[1].get(), client_context->native());
    for (int i = 0; i < 10 && !(SSL_is_init_finished(client->ssl.get()) && is_established()); ++i) {
      SSL_do_handshake(client->ssl.get());
      while (read().status == IoStatus::ok) {
      }
    }
    EXPECT_TRUE(is_established());
  }

  [[nodiscard]] bool is_established() const { return io->is_established(); }
  IoResult read() { return io->read(room); }
  [[nodiscard]] std::size_t unread() const {
    int bytes = 0;
    ::ioctl(sockets[0].get(), FIONREAD, &bytes);
    return static_cast<std::size_t>(bytes);
  }

  const std::shared_ptr<TlsContext> context = server_context();
  const std::shared_ptr<TlsContext> client_context = TlsContext::client({.insecure = true}).value();
  std::array<Descriptor, 2> sockets;
  std::optional<SocketIo> io;
  std::optional<RawClient> client;
  std::array<char, 4096> room;
};

TEST_F(TransportTest, AReadTakesOneRecord) {
  const std::string updates = client->key_updates(50, "hello");
  client->send(updates);
  for (int i = 1; i <= 50; ++i) {
    const IoResult result = read();
    EXPECT_EQ(result.status, IoStatus::ok);
    EXPECT_EQ(result.bytes, 0U);
    EXPECT_GT(unread(), updates.size() * static_cast<std::size_t>(50 - i) / 51);
  }
  const IoResult result = read();
  EXPECT_EQ(std::string_view(room.data(), result.bytes), "hello");
  EXPECT_EQ(read().status, IoStatus::want_read);
}

TEST_F(TransportTest, EndsAPeerThatSendsRecordsWithNothingForUs) {
  client->send(client->key_updates(2000, "hello"));
  int reads = 0;
  while (read().status == IoStatus::ok) ++reads;
  EXPECT_LT(reads, 300);
  EXPECT_GT(unread(), 0U);
}

// Data follows each series of key updates, so the limit is never reached.
TEST_F(TransportTest, PeersMayChangeTheirKeysForAsLongAsTheySaySomething) {
  for (int i = 0; i < 20; ++i) {
    client->send(client->key_updates(50, "hello"));
    std::size_t bytes = 0;
    for (IoResult result = read(); result.status == IoStatus::ok; result = read()) {
      bytes += result.bytes;
    }
    EXPECT_EQ(bytes, 5U);
  }
}

/// Answers "hello", or opens a WebSocket that echoes.
class Hello final : public HttpHandler {
 public:
  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
    if (request.has(KnownHeader::upgrade)) {
      struct Echo final : WebSocketHandler {
        bool on_message(std::string_view text) override { return session->send_text(text), true; }
        WebSocketSessionPtr session;
      };
      auto handler = std::make_unique<Echo>();
      Echo& echo = *handler;
      echo.session = exchange->upgrade_websocket(request, {}, std::move(handler));
      return;
    }
    exchange->reply(200, "text/plain", request.tls ? "hello" : "no TLS");
  }
};

void send_all(const Descriptor& socket, std::string_view bytes) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

/// Connects from the loopback address 127.0.0.1 + `own`.
Descriptor connect_to(std::uint16_t port, std::uint32_t own = 0) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + own);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

class TlsConnectionTest : public TlsTest {
 protected:
  TlsConnectionTest() : port(server.listen({"127.0.0.1", 0}, server_context()).value()) {}

  /// The first message of a handshake.
  static std::string hello() {
    const auto context = TlsContext::client({.insecure = true}).value();
    RawClient client(-1, context->native());
    BIO* const written = BIO_new(BIO_s_mem());
    SSL_set0_wbio(client.ssl.get(), written);
    SSL_do_handshake(client.ssl.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(written, &data);
    return {data, static_cast<std::size_t>(size)};
  }

  [[nodiscard]] Url url(const std::string& scheme, const std::string& host) const {
    return {.scheme = scheme, .host = host, .port = port, .target = "/"};
  }

  /// Returns the body or the failure.
  Result<std::string> get(const Url& from, const TlsClientOptions& tls) {
    HttpClient client(loop, {.tls = TlsContext::client(tls).value()});
    std::string body;
    bool complete = false;
    std::optional<Error> error;
    const auto call = client.send({.method = "GET", .url = from},
                                  {.on_body = [&](std::string_view bytes) { body.append(bytes); },
                                   .on_complete = [&] { complete = true; },
                                   .on_failure = [&](const Error& why) { error = why; }});
    EXPECT_TRUE(run_until(loop, [&] { return complete || error.has_value(); }));
    if (error) return std::unexpected(*error);
    return body;
  }

  EventLoop loop;
  Hello handler;
  HttpServer server{{&loop}, {&handler}};
  std::uint16_t port;
};

TEST_F(TlsConnectionTest, TrustsWhatTheCaFileVouchesFor) {
  EXPECT_EQ(get(url("https", "localhost"), {.ca_file = path("cert.pem")}), "hello");
}

TEST_F(TlsConnectionTest, ChecksTheName) {
  const auto body = get(url("https", "127.0.0.1"), {.ca_file = path("cert.pem")});
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, 502);
  EXPECT_THAT(body.error().message, AllOf(HasSubstr("127.0.0.1"), HasSubstr("mismatch")));
}

TEST_F(TlsConnectionTest, ChecksTheAuthority) {
  const auto body = get(url("https", "localhost"), {});
  ASSERT_FALSE(body);
  EXPECT_THAT(body.error().message, HasSubstr("self-signed certificate"));
}

TEST_F(TlsConnectionTest, TrustsAnybodyIfTold) {
  EXPECT_EQ(get(url("https", "127.0.0.1"), {.insecure = true}), "hello");
}

TEST_F(TlsConnectionTest, FailsWithoutTlsOnEitherSide) {
  EXPECT_FALSE(get(url("http", "localhost"), {.insecure = true}));
  HttpServer plain({&loop}, {&handler});
  port = plain.listen({"127.0.0.1", 0}).value();
  EXPECT_FALSE(get(url("https", "localhost"), {.insecure = true}));
}

// An attacker can end the connection, but cannot forge the close_notify of TLS.
TEST_F(TlsConnectionTest, AReplyThatEndsWithTheConnectionMustSaySo) {
  for (const bool says_so : {true, false}) {
    const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), where, size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), where, &size), 0);
    port = ntohs(address.sin_port);
    std::thread peer([&] {
      const Descriptor socket(::accept(listener.get(), nullptr, nullptr));
      SocketIo io(socket.get(), server_context().get());
      std::array<char, 4096> request;
      for (IoResult got; got.bytes == 0 && got.status == IoStatus::ok;) {
        got = io.read(request);
      }
      std::string reply = "HTTP/1.1 200 OK\r\n\r\nhalf";
      const iovec part{.iov_base = reply.data(), .iov_len = reply.size()};
      io.write({&part, 1});
      if (says_so) io.shutdown_send();
    });
    const Result<std::string> body = get(url("https", "127.0.0.1"), {.insecure = true});
    peer.join();
    EXPECT_EQ(body.value_or("cut off"), says_so ? "half" : "cut off");
  }
}

// The kernel reports only once that all of these records have arrived.
TEST_F(TlsConnectionTest, FindsTheRequestBehindRecordsWithNothingForUs) {
  const Descriptor socket = connect_to(port);
  const auto context = TlsContext::client({.insecure = true}).value();
  RawClient client(socket.get(), context->native());
  ASSERT_TRUE(run_until(loop, [&] { return SSL_do_handshake(client.ssl.get()) == 1; }));
  client.send(client.key_updates(100, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  std::array<char, 4096> room;
  int got = 0;
  ASSERT_TRUE(run_until(loop, [&] {
    got = SSL_read(client.ssl.get(), room.data(), room.size());
    return got > 0;
  }));
  EXPECT_TRUE(std::string_view(room.data(), static_cast<std::size_t>(got)).ends_with("hello"));
}

class BusyTlsTest : public TlsConnectionTest {
 protected:
  static constexpr std::ptrdiff_t kPeers = 30;

  BusyTlsTest() { port = busy.listen({"127.0.0.1", 0}, server_context()).value(); }

  void connect_peers() {
    for (std::ptrdiff_t i = 0; i < kPeers; ++i) peers.push_back(connect_to(port));
    EXPECT_TRUE(run_until(loop, [&] { return busy.stats().connections >= kPeers; }));
  }
  /// The number of peers to which the server has sent its part of a handshake.
  [[nodiscard]] std::ptrdiff_t answered() const {
    return std::ranges::count_if(peers, [](const Descriptor& peer) {
      char byte = 0;
      return ::recv(peer.get(), &byte, 1, MSG_PEEK) == 1;
    });
  }

  /// Does one step of work in each turn.
  HttpServer busy{{&loop}, {&handler}, {.output = {}, .work = {.turn = 1, .connection = 1}}};
  std::vector<Descriptor> peers;
};

TEST_F(BusyTlsTest, HandshakesTakeTurns) {
  connect_peers();
  for (const Descriptor& peer : peers) send_all(peer, hello());
  for (std::ptrdiff_t turns = 1; answered() < kPeers; ++turns) {
    ASSERT_LT(turns, 1000);
    loop.poll();
    EXPECT_LE(answered(), 2 * turns);
  }
}

TEST_F(BusyTlsTest, AddressesTakeTurns) {
  connect_peers();
  const Descriptor other = connect_to(port, 1);
  ASSERT_TRUE(run_until(loop, [&] { return busy.stats().connections > kPeers; }));
  for (const Descriptor& peer : peers) send_all(peer, hello());
  loop.poll();
  send_all(other, hello());
  char byte = 0;
  ASSERT_TRUE(run_until(loop, [&] { return ::recv(other.get(), &byte, 1, MSG_PEEK) == 1; }));
  EXPECT_LT(answered(), kPeers / 2);
}

TEST_F(BusyTlsTest, WhoHasGoneIsAnsweredNoHello) {
  connect_peers();
  for (const Descriptor& peer : peers) {
    send_all(peer, hello());
    ::shutdown(peer.get(), SHUT_WR);
  }
  ASSERT_TRUE(run_until(loop, [&] { return busy.stats().connections == 0; }));
  EXPECT_EQ(answered(), 0);
}

TEST_F(BusyTlsTest, HandshakesDoNotKeepThoseWhoHaveOneBehindThem) {
  const Descriptor socket = connect_to(port);
  const auto context = TlsContext::client({.insecure = true}).value();
  RawClient client(socket.get(), context->native());
  ASSERT_TRUE(run_until(loop, [&] { return SSL_do_handshake(client.ssl.get()) == 1; }));
  connect_peers();
  for (const Descriptor& peer : peers) send_all(peer, hello());
  static constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  SSL_write(client.ssl.get(), kRequest.data(), static_cast<int>(kRequest.size()));
  std::array<char, 4096> room;
  ASSERT_TRUE(
      run_until(loop, [&] { return SSL_read(client.ssl.get(), room.data(), room.size()) > 0; }));
  EXPECT_LT(answered(), kPeers / 2);
  // Handshakes make progress too, whoever else is busy.
  ASSERT_TRUE(run_until(loop, [&] {
    SSL_write(client.ssl.get(), kRequest.data(), static_cast<int>(kRequest.size()));
    return answered() == kPeers;
  }));
}

TEST_F(TlsConnectionTest, HandshakesDrawOnTheMemoryOfAll) {
  MemoryBudget memory(std::size_t{4} << 20U);
  HttpServer bounded({&loop}, {&handler}, {.output = {}, .memory = &memory});
  port = bounded.listen({"127.0.0.1", 0}, server_context()).value();
  // The beginning of a ClientHello of 131,000 bytes, for which OpenSSL allocates memory.
  const std::string claim("\x16\x03\x01\x00\x06\x01\x01\xFF\xB8\x03\x03", 11);
  std::vector<Descriptor> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(connect_to(port));
    send_all(peers.back(), claim);
    loop.poll();
  }
  ASSERT_TRUE(run_until(loop, [&] { return bounded.stats().connections < 50; }));
  EXPECT_GT(memory.used(), 0U);
  EXPECT_LE(memory.used(), memory.limit() / 3);
  // Memory is left for complete handshakes.
  EXPECT_EQ(get(url("https", "localhost"), {.insecure = true}), "hello");
  const std::size_t used = memory.used();
  const Descriptor other = connect_to(port);
  send_all(other, hello());
  ASSERT_TRUE(run_until(loop, [&] { return memory.used() > used; }));
  peers.clear();
  ASSERT_TRUE(run_until(loop, [&] { return memory.used() < used; }));
  EXPECT_EQ(bounded.stats().connections, 1U);
  // Nor are handshakes refused when others hold all the memory.
  const std::size_t free = memory.limit() - memory.used();
  ASSERT_TRUE(memory.try_acquire(free));
  EXPECT_EQ(get(url("https", "localhost"), {.insecure = true}), "hello");
  memory.release(free);
}

TEST_F(TlsConnectionTest, CarriesLargeMessagesOverAWebSocket) {
  const std::string large(3U << 20U, 'x');
  std::optional<std::string> echoed;
  std::optional<Error> ended;
  std::optional<WebSocketClient> client;
  client.emplace(
      loop, url("wss", "localhost"), HttpHeaderList{},
      WebSocketClientCallbacks{
          .on_open = [&] { EXPECT_TRUE(client->send_text(large)); },
          .on_message = [&](WebSocketOpcode, std::string_view text) { echoed.emplace(text); },
          .on_end = [&](const Error& error) { ended = error; }},
      WebSocketClientOptions{.tls = TlsContext::client({.ca_file = path("cert.pem")}).value()});
  EXPECT_TRUE(run_until(loop, [&] { return echoed || ended; }));
  EXPECT_FALSE(ended) << ended->message;
  EXPECT_EQ(echoed, large);
}

}  // namespace
}  // namespace sluice
