#include "net/transport.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace sluice {

Transport::Transport(int socket, TlsContext* tls) : socket_(socket) {
  if (tls == nullptr) return;
  ssl_ = SSL_new(tls->native());
  if (ssl_ == nullptr || SSL_set_fd(ssl_, socket_) != 1) return;
  SSL_set_accept_state(ssl_);
}

Transport::~Transport() {
  SSL_free(ssl_);
}

IoResult Transport::read(std::span<char> into) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    return tls_result(
        SSL_read(ssl_, into.data(), static_cast<int>(std::min<std::size_t>(into.size(), INT_MAX))));
  }
  for (;;) {
    const ssize_t got = ::recv(socket_, into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return {IoStatus::ok, static_cast<std::size_t>(got)};
    if (got == 0) return {IoStatus::closed, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStatus::want_read, 0};
    return {IoStatus::failed, 0};
  }
}

IoResult Transport::write(std::span<const iovec> parts) {
  if (ssl_ != nullptr) {
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

void Transport::shutdown_send() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  ::shutdown(socket_, SHUT_WR);
}

IoResult Transport::tls_result(int returned) {
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
