#include "client/authorization/redirect_receiver.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <map>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "net/http/status_codes.hpp"
#include "net/loop/acceptor.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr std::string_view kCallbackPath = "/callback";
constexpr std::size_t kMaxCallbackHead = std::size_t{16} << 10U;
constexpr std::size_t kMaxCallbackPeers = 16;
constexpr Duration kCallbackPatience = std::chrono::seconds(10);

std::string_view page_text(RedirectVerdict verdict) {
  switch (verdict) {
    case RedirectVerdict::accepted:
      return "The login is done, and Sluice goes on. You can close this window.";
    case RedirectVerdict::refused:
      return "The login has failed. Sluice says why.";
    case RedirectVerdict::not_of_it:
      return "This is not the login that Sluice is waiting for.";
  }
  return {};
}

/// Nothing of the request is repeated, so that a page cannot carry anything in.
std::string make_page(int status, std::string_view text) {
  const std::string body =
      "<!doctype html><meta charset=utf-8><title>Sluice</title><p>" + std::string(text) + "\n";
  return "HTTP/1.1 " + std::to_string(status) +
         (status == 200         ? " OK"
          : status == kNotFound ? " Not Found"
                                : " Bad Request") +
         "\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: " +
         std::to_string(body.size()) +
         "\r\nConnection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
         "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\n\r\n" +
         body;
}

/// The target of a GET request whose head is complete, or an empty view.
std::string_view target_of(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  if (!line.starts_with("GET ") || !line.ends_with(" HTTP/1.1")) return {};
  const std::string_view target = line.substr(4, line.size() - 13);
  return target.find(' ') == std::string_view::npos ? target : std::string_view();
}

class LoopbackReceiver final : public RedirectReceiver {
 public:
  LoopbackReceiver(EventLoop& loop, const std::string& host, std::uint16_t port, Descriptor socket,
                   OnRedirect on_redirect)
      : loop_(&loop),
        uri_("http://" + host + ":" + std::to_string(port) + std::string(kCallbackPath)),
        on_redirect_(std::move(on_redirect)),
        acceptor_(
            loop, std::move(socket),
            [this](Descriptor peer, const PeerAddress&) { on_peer(std::move(peer)); }, errors_) {}
  ~LoopbackReceiver() override = default;
  LoopbackReceiver(const LoopbackReceiver&) = delete;
  LoopbackReceiver& operator=(const LoopbackReceiver&) = delete;

  [[nodiscard]] const std::string& redirect_uri() const override { return uri_; }

 private:
  /// One connection with one request.
  class Peer final : private EventLoop::Watcher {
   public:
    Peer(LoopbackReceiver& owner, std::uint64_t number, Descriptor socket)
        : owner_(&owner), number_(number), socket_(std::move(socket)) {
      owner_->loop_->watch(socket_.get(), *this);
      timer_ = owner_->loop_->schedule_at(owner_->loop_->clock().now() + kCallbackPatience, [this] {
        timer_ = 0;
        owner_->peers_.erase(number_);
      });
    }
    ~Peer() override {
      owner_->loop_->unwatch(socket_.get(), *this);
      if (timer_ != 0) owner_->loop_->cancel(timer_);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

   private:
    void on_ready(std::uint32_t events) override {
      std::array<char, 4096> piece{};
      for (;;) {
        const ssize_t size = ::recv(socket_.get(), piece.data(), piece.size(), 0);
        if (size < 0 && errno == EAGAIN) break;
        if (size <= 0 || head_.size() + static_cast<std::size_t>(size) > kMaxCallbackHead) {
          return end();
        }
        head_.append(piece.data(), static_cast<std::size_t>(size));
      }
      if (is_answered_ || !head_.contains("\r\n\r\n")) {
        if ((events & (EPOLLHUP | EPOLLERR)) != 0) end();
        return;
      }
      is_answered_ = true;
      const std::string page = answer();
      // A page fits the socket's buffer. The browser closes the connection, or the timer does.
      ::send(socket_.get(), page.data(), page.size(), MSG_NOSIGNAL);
      ::shutdown(socket_.get(), SHUT_WR);
    }
    std::string answer() {
      const std::string_view target = target_of(head_);
      const std::string_view path = target.substr(0, target.find('?'));
      if (path != kCallbackPath) return make_page(kNotFound, "There is nothing here.");
      const std::string_view query =
          path.size() == target.size() ? std::string_view() : target.substr(path.size() + 1);
      const RedirectVerdict verdict = owner_->on_redirect_(query);
      return make_page(verdict == RedirectVerdict::accepted ? 200 : kBadRequest,
                       page_text(verdict));
    }
    /// Not at once, because the loop is in this object.
    void end() {
      owner_->loop_->post([weak = std::weak_ptr(owner_->alive_), owner = owner_, number = number_] {
        if (!weak.expired()) owner->peers_.erase(number);
      });
    }

    LoopbackReceiver* owner_;
    const std::uint64_t number_;
    Descriptor socket_;
    std::string head_;
    bool is_answered_ = false;
    Executor::TimerId timer_ = 0;
  };

  void on_peer(Descriptor socket) {
    // The newest is the most likely to be the browser that comes back: others may only hold places.
    if (peers_.size() >= kMaxCallbackPeers) peers_.erase(peers_.begin());
    const std::uint64_t number = ++last_number_;
    peers_.emplace(number, std::make_unique<Peer>(*this, number, std::move(socket)));
  }

  EventLoop* loop_;
  const std::string uri_;
  const OnRedirect on_redirect_;
  std::atomic<std::uint64_t> errors_ = 0;
  std::uint64_t last_number_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  Acceptor acceptor_;
};

}  // namespace

Result<std::unique_ptr<RedirectReceiver>> listen_for_redirect(EventLoop& loop,
                                                              const std::string& host,
                                                              std::uint16_t port,
                                                              OnRedirect on_redirect) {
  HostPort place{.host = "127.0.0.1", .port = port};
  Result<std::vector<Descriptor>> sockets = listen_on(place);
  if (!sockets) return std::unexpected(sockets.error());
  return std::make_unique<LoopbackReceiver>(loop, host, place.port, std::move(sockets->front()),
                                            std::move(on_redirect));
}

}  // namespace sluice
