// The C++ of the documentation, compiled. tests/e2e/program/docs.test.mjs writes each block to a
// file: "server-2.inc" is the second block of C++ in docs/server.md.

#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <syslog.h>
#include <utility>

#include "sluice/agent.hpp"
#include "sluice/authenticator.hpp"
#include "sluice/client.hpp"
#include "sluice/concurrency.hpp"
#include "sluice/local_model.hpp"
#include "sluice/log.hpp"
#include "sluice/server.hpp"
#include "sluice/stream_tool.hpp"
#include "sluice/testing.hpp"

using namespace std::chrono_literals;

namespace agents {
void run() {
#include "agent-1.inc"
}
void tools(const sluice::Model& model) {
#include "agent-2.inc"
}
void streams(sluice::Server& own) {
#include "agent-3.inc"
}
void custom() {
#include "agent-4.inc"
}
void local() {
#include "agent-5.inc"
}
void kept(const sluice::Model& model) {
#include "agent-6.inc"
}
void hands_over(const sluice::Model& model) {
#include "agent-7.inc"
}
}  // namespace agents

namespace program {
#include "server-1.inc"
}

namespace concurrently {
struct In {
  int id;
};
sluice::Task<std::string> find_user(int id, sluice::Call& call);
sluice::Task<std::string> read_news(sluice::Call& call);
sluice::Task<std::string> handler(In in, sluice::Call& call) {
#include "server-2.inc"
  co_return user + news;
}
}  // namespace concurrently

namespace pages {
void serve(sluice::Server& server) {
#include "server-3.inc"
}
}  // namespace pages

namespace limits {
void serve(sluice::Server& server) {
#include "server-4.inc"
}
}  // namespace limits

namespace around {
struct Tokens {
  bool allow(const std::string& principal, const std::string& method, const std::string& name);
  void spent(const std::string& principal, std::optional<int> error, bool cancelled);
};
void use(sluice::Server& server, Tokens& tokens) {
#include "server-5.inc"
}
}  // namespace around

namespace who {
std::string holder_of(std::string_view ticket);
int serve(sluice::Server& server) {
#include "server-6.inc"
}
}  // namespace who

namespace visible {
std::string delete_all();
void add(sluice::Server& server) {
#include "server-7.inc"
}
}  // namespace visible

namespace syslogging {
void to_syslog() {
#include "server-8.inc"
}
}  // namespace syslogging

namespace task {
struct Document {
  std::string text;
};
sluice::Task<std::string> analyse(Document in, sluice::Call& call);
void add(sluice::Server& server) {
#include "tasks-1.inc"
}
}  // namespace task

namespace testing_it {
struct Total {
  int sum;
};
sluice::Server make_server();
#include "testing-1.inc"
void wait(sluice::testing::Client& client) {
#include "testing-2.inc"
}
void ask() {
#include "testing-3.inc"
}
}  // namespace testing_it

namespace client_of_servers {
struct Numbers {
  int a;
  int b;
};
struct Total {
  int sum;
};
void call() {
#include "client-1.inc"
}
void stream(sluice::Client& client) {
#include "client-2.inc"
}
void serve(sluice::Server& server, sluice::Client client) {
#include "client-3.inc"
}
void ask() {
#include "client-4.inc"
}
void save(const std::string& id);
std::string load();
void await(sluice::Client& client) {
#include "client-5.inc"
}
void take_up(sluice::Client& client) {
#include "client-6.inc"
}
void watch(sluice::Client& client) {
#include "client-7.inc"
}
void open_in_browser(const std::string& url);
void log_in() {
#include "client-8.inc"
}
}  // namespace client_of_servers

namespace authorized {
void open_in_browser(const std::string& url);
std::string read_file(const std::string& path);
std::expected<std::string, sluice::Error> read_token(const std::string& path);
std::expected<std::string, sluice::Error> current_id_token();
void first() {
#include "authorization-1.inc"
}
void grants() {
#include "authorization-2.inc"
#include "authorization-3.inc"
#include "authorization-4.inc"
#include "authorization-5.inc"
}
void overrule() {
#include "authorization-6.inc"
}
}  // namespace authorized
