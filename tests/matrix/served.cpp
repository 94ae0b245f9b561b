#include "served.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "server/api/server_state.hpp"
#include "server/host/server_host.hpp"

namespace sluice::matrix {
namespace {

using namespace std::chrono_literals;

struct Add {
  int a;
  int b;
};
struct Total {
  int sum;
};
struct Name {
  std::string name;
};
struct Topic {
  std::string topic;
  std::optional<std::string> style;
};
struct Item {
  std::string id;
};

Served::Pipes pipe_ends(Descriptor& input, Descriptor& output) {
  std::array<std::array<int, 2>, 2> ends{};
  for (auto& pair : ends) {
    if (::pipe2(pair.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  for (const int end : {ends[0][0], ends[1][1]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  input = Descriptor(ends[0][0]);
  output = Descriptor(ends[1][1]);
  return {.to_server = Descriptor(ends[0][1]), .from_server = Descriptor(ends[1][0])};
}

}  // namespace

Served::Served(bool sessions, bool waits) {
  if (waits) {
    server_.use([](Request& request) -> Task<> {
      co_await request.in_background([] {});
      co_await request.next();
    });
  }
  offer_tools();
  offer_questions();
  offer_resources();
  offer_the_rest();
  ServerHostOptions options;
  options.tcp = {{.at = {.host = "127.0.0.1"}}};
  options.threads = 1;
  options.unix_path = unix_path();
  if (!sessions) options.sessions.max_sessions = 0;
  // Tasks belong to the client that created them, so clients need API keys: an address does not
  // identify them.
  options.access.authenticator = std::make_shared<ApiKeys>(
      std::vector<std::pair<std::string, std::string>>{{"matrix", std::string(kApiKey)}});
  auto host = server_.state()->start<ServerHost>(std::move(options));
  if (!host) throw std::runtime_error(host.error().message);
  host_ = std::move(*host);
}

Served::~Served() {
  server_.state()->forget(*host_);
}

std::uint16_t Served::port() const {
  return host_->port();
}

Served::Pipes Served::connect_pipes() {
  Descriptor input;
  Descriptor output;
  Pipes ends = pipe_ends(input, output);
  host_->serve_lines(std::move(input), std::move(output), [] {});
  return ends;
}

void Served::offer_tools() {
  server_.tool("add", "Adds two integers", [](Add in) { return Total{in.a + in.b}; },
               {.title = "Sum",
                .annotations = {.read_only = true},
                .icons = {{.src = "https://example.com/add.png"}}});
  server_.tool("fail", "Fails", []() -> std::string { throw ToolError("It broke"); });
  server_.tool("refuse", "Refuses", []() -> std::string { throw Error{42, "Refused", {}}; });
  server_.tool("contents", "All kinds of content", [] {
    return std::vector<Content>{
        Content::text("text"), Content::image("png", "image/png"),
        Content::audio("wav", "audio/wav"), Content::link({.uri = "test://text", .name = "text"}),
        Content::resource({.uri = "test://text", .mime_type = "text/plain", .data = "hello"})};
  });
  server_.tool("count", "Counts aloud", []() -> Stream<Total> {
    co_yield text("one ");
    co_yield text("two ");
    co_return Total{3};
  });
  server_.tool("log", "Logs", [](Call& call) {
    call.log(LoggingLevel::debug, "detail");
    call.log(LoggingLevel::warning, "trouble", "matrix");
  });
  server_.tool("wait", "Waits until it is cancelled", [this](Call& call) -> Task<std::string> {
    const std::stop_callback told(call.stop_token(), [this] {
      cancelled_ = true;
      cancelled_.notify_all();
    });
    call.progress(0.5);
    co_await call.sleep(1h);
    co_return "too late";
  });
  server_.tool("trace", "Where the call stands in a trace", [](Call& call) {
    return call.trace() == nullptr ? std::string("none") : std::string(call.trace()->trace_id());
  });
  server_.tool("job", "Goes on as a task where clients know them",
               [](Call& call) -> Task<std::string> {
                 const Elicited<Name> given = co_await call.elicit<Name>("Whose job?");
                 co_return given ? "Done for " + given.content->name : std::string("Done");
               },
               {.tasks = TaskSupport::optional});
}

void Served::offer_questions() {
  server_.tool("elicit", "Asks the user", [](Call& call) -> Task<std::string> {
    const Elicited<Name> first = co_await call.elicit<Name>("Who?");
    const Elicited<Name> second = co_await call.elicit<Name>("And who else?");
    co_return "Hello, " + first.content->name + " and " + second.content->name;
  });
  server_.tool("sample", "Asks the client's model", [](Call& call) -> Task<std::string> {
    const SamplingResult said = co_await call.sample(
        {.messages = {{.content = Content::text("Say something")}}, .max_tokens = 10});
    co_return said.text();
  });
  server_.tool("roots", "Asks for the roots", [](Call& call) -> Task<std::string> {
    const std::vector<Root> roots = co_await call.list_roots();
    co_return roots.at(0).uri;
  });
}

void Served::offer_resources() {
  server_.resource("test://text", "text", [] { return "hello"; },
                   {.title = "A text", .mime_type = "text/plain"});
  server_.resource("test://bytes", "bytes", [] {
    return ResourceContents{.uri = {}, .data = std::string("\0\x01\xFF", 3), .binary = true};
  });
  for (int i = 0; i < kManyResources - 2; ++i) {
    const std::string number = std::to_string(i);
    server_.resource("test://many/" + number, "many " + number, [] { return ""; });
  }
  server_.resource_template("test://item/{id}", "item", [](Item in) { return "item " + in.id; });
  server_.completion(TemplateRef{"test://item/{id}"}, "id", [](const std::string& typed) {
    return std::vector<std::string>{typed + "1", typed + "2"};
  });
}

void Served::offer_the_rest() {
  server_.prompt("explain", "Explains a topic", [](const Topic& in) {
    return "Explain " + in.topic + " " + in.style.value_or("plainly");
  });
  server_.completion(PromptRef{"explain"}, "style", [](const std::string& typed) {
    return std::vector<std::string>{typed + "fully", typed + "briefly"};
  });
  server_.skill(
      "acme/refunds",
      {{"SKILL.md", "---\nname: refunds\ndescription: Refunds orders\n---\n# Refunds\n"}});
  const auto run = [](const json::object& /*params*/, const MethodCaller& /*caller*/,
                      const std::shared_ptr<ChunkStream>& stream) -> Result<void> {
    stream->append(ChunkKind::text, "one ");
    stream->append(ChunkKind::text, "two");
    stream->finish();
    return {};
  };
  server_.state()->change({}, [&](ServerDefinition& definition) {
    definition.stream_methods.push_back({.name = "run", .handler = run});
    return true;
  });
}

}  // namespace sluice::matrix
