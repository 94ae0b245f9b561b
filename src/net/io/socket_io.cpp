#include "net/io/socket_io.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <linux/sockios.h>
#include <new>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace sluice {
namespace {

/// OpenSSL reads a record's header, then the rest.
constexpr std::uint8_t kTakesOfRecord = 2;
/// A handshake needs a few, and some more if its records arrive in pieces.
constexpr std::uint8_t kMaxBarrenReads = 250;

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// Sets the server name that a client sends and the name or address that it checks in the
/// certificate (RFC 6066, section 3; RFC 9525).
bool expect_server(SSL* ssl, const std::string& server) {
  if (is_address(server)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server.c_str()) == 1;
  }
  return SSL_set_tlsext_host_name(ssl, server.c_str()) == 1 &&
         SSL_set1_host(ssl, server.c_str()) == 1;
}

}  // namespace

std::uint32_t unacknowledged_bytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<std::uint32_t>(bytes) : 0;
}

SocketIo::SocketIo(int socket, TlsContext* tls, const std::string& server) : socket_(socket) {
  if (tls == nullptr) return;
  ssl_ = SSL_new(tls->native());
  // Without TLS, or without the check, nothing may be sent.
  if (ssl_ == nullptr || SSL_set_fd(ssl_, socket_) != 1 ||
      (tls->is_client() && !expect_server(ssl_, server))) {
    SSL_free(ssl_);
    throw std::bad_alloc();
  }
  if (tls->is_client()) {
    SSL_set_connect_state(ssl_);
  } else {
    SSL_set_accept_state(ssl_);
    BIO_set_callback_arg(SSL_get_rbio(ssl_), reinterpret_cast<char*>(this));
    BIO_set_callback_ex(SSL_get_rbio(ssl_), on_bio);
  }
}

SocketIo::~SocketIo() {
  SSL_free(ssl_);
}

bool SocketIo::is_established() const {
  return ssl_ == nullptr || SSL_is_init_finished(ssl_) == 1;
}

bool SocketIo::awaits_hello() const {
  if (ssl_ == nullptr) return false;
  const OSSL_HANDSHAKE_STATE state = SSL_get_state(ssl_);
  return state == TLS_ST_BEFORE || state == TLS_ST_SR_CLNT_HELLO;
}

std::string SocketIo::failure_reason() const {
  if (ssl_ != nullptr) {
    const long verified = SSL_get_verify_result(ssl_);
    if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
    const unsigned long code = ERR_peek_last_error();
    const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    if (reason != nullptr) return reason;
  }
  return errno == 0 ? "the connection was broken off" : std::strerror(errno);
}

IoResult SocketIo::read(std::span<char> into) {
  if (ssl_ != nullptr) return tls_read(into);
  for (;;) {
    const ssize_t got = ::recv(socket_, into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return {IoStatus::ok, static_cast<std::size_t>(got)};
    if (got == 0) return {IoStatus::closed, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStatus::want_read, 0};
    return {IoStatus::failed, 0};
  }
}

IoResult SocketIo::write(std::span<const iovec> parts) {
  if (ssl_ != nullptr) {
    takes_left_ = kTakesOfRecord;
    std::size_t total = 0;
    for (const iovec& part : parts) {
      if (part.iov_len == 0) continue;
      ERR_clear_error();
      const IoResult result = tls_result(SSL_write(
          ssl_, part.iov_base, static_cast<int>(std::min<std::size_t>(part.iov_len, INT_MAX))));
      total += result.bytes;
      if (result.status != IoStatus::ok) {
        return total > 0 ? IoResult{IoStatus::ok, total} : result;
      }
      if (result.bytes < part.iov_len) break;
    }
    return {IoStatus::ok, total};
  }
  for (;;) {
    ssize_t sent = 0;
    if (parts.size() == 1) {
      sent = ::send(socket_, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = parts.size();
      sent = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (sent >= 0) return {IoStatus::ok, static_cast<std::size_t>(sent)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStatus::want_write, 0};
    return {IoStatus::failed, 0};
  }
}

void SocketIo::shutdown_send() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  ::shutdown(socket_, SHUT_WR);
}

IoResult SocketIo::tls_read(std::span<char> into) {
  takes_left_ = kTakesOfRecord;
  is_held_back_ = false;
  ERR_clear_error();
  const IoResult result = tls_result(
      SSL_read(ssl_, into.data(), static_cast<int>(std::min<std::size_t>(into.size(), INT_MAX))));
  if (result.bytes > 0) barren_reads_ = 0;
  if (result.status != IoStatus::want_read || !is_held_back_) return result;
  // There may be more in the socket.
  return {++barren_reads_ < kMaxBarrenReads ? IoStatus::ok : IoStatus::failed, 0};
}

/// Limits how much OpenSSL reads in one call. It would otherwise go on for as long as there are
/// records without data (handshake messages, key updates, alerts), and a peer could occupy the loop
/// with them.
long SocketIo::on_bio(BIO* bio, int operation, const char* /*data*/, std::size_t /*size*/,
                      int /*argument*/, long /*long_argument*/, int result,
                      std::size_t* /*moved*/) {
  if (operation != BIO_CB_READ) return result;
  auto& io = *reinterpret_cast<SocketIo*>(BIO_get_callback_arg(bio));
  if (io.takes_left_ > 0) {
    --io.takes_left_;
    return result;
  }
  io.is_held_back_ = true;
  BIO_set_retry_read(bio);
  return -1;
}

IoResult SocketIo::tls_result(int returned) {
  if (returned > 0) return {IoStatus::ok, static_cast<std::size_t>(returned)};
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      return {IoStatus::want_read, 0};
    case SSL_ERROR_WANT_WRITE:
      return {IoStatus::want_write, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {IoStatus::closed, 0};
    default:
      return {IoStatus::failed, 0};
  }
}

}  // namespace sluice
