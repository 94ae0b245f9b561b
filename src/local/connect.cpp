#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "client/api/client_connection.hpp"
#include "client/link/line_link.hpp"
#include "client/link/traced_link.hpp"
#include "net/loop/descriptor.hpp"
#include "server/api/server_state.hpp"
#include "server/host/server_host.hpp"
#include "sluice/client.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

/// A server of this process, with a loop of its own.
class LocalServer {
 public:
  /// Throws Error.
  explicit LocalServer(const Server& server) : state_(server.state()) {
    ServerHostOptions options;
    options.threads = 1;
    auto started = state_->start<ServerHost>(std::move(options));
    if (!started) throw Error(std::move(started.error()));
    host_ = *std::move(started);
  }
  ~LocalServer() {
    state_->forget(*host_);
    // Its own handler would wait for itself, so another thread ends it.
    if (host_->on_handler_thread()) std::thread([host = std::move(host_)] {}).detach();
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  /// The client's end of a connection to it.
  Result<LineEnds> connect() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return fail(500, std::string("The system makes no pair of sockets: ") + std::strerror(errno));
    }
    Descriptor ours(ends[0]);
    Descriptor input(ends[1]);
    Descriptor output(::fcntl(input.get(), F_DUPFD_CLOEXEC, 0));
    if (!output) return fail(500, std::string("The system has no descriptor left"));
    host_->serve_lines(std::move(input), std::move(output), [] {});
    return LineEnds{.input = std::move(ours), .output = {}};
  }

 private:
  std::shared_ptr<detail::ServerState> state_;
  std::unique_ptr<ServerHost> host_;
};

}  // namespace

Client connect(const Server& server, ClientOptions options) {
  const auto local = std::make_shared<LocalServer>(server);
  // It would hide changes that the program makes itself, and asking costs no network.
  options.caching = false;
  const auto on_traffic = options.on_traffic;
  auto connection = detail::ClientConnection::open(
      [&](EventLoop& loop) -> Result<std::unique_ptr<ServerLink>> {
        return traced(std::make_unique<LineLink>(loop, [local] { return local->connect(); }),
                      "local", on_traffic);
      },
      std::move(options), false, local);
  if (!connection) throw Error(std::move(connection.error()));
  return Client(*std::move(connection));
}

}  // namespace sluice
