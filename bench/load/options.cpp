#include "options.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

namespace sluice::bench {

const char* const kUsage = R"(sluice_bench_load MODE --port N [OPTION...] [-- COMMAND...]

Modes; each prints one JSON object:
  echo       tools/call echo on each connection, one after another; over stdio all
             calls share the pipes of the server that COMMAND starts
  stream     streams of --count chunks, one after another on each connection (see --via)
  poll       the same with polling: `run` with from_seq and wait_ms
  fanout     one stream, --connections readers of GET /streams/{id}; or, with --subscribe and
             --publish, readers and one publisher of a message broker
  paced      one endless stream per connection, one chunk per --interval-us; measures latencies
  idle       opens --connections quiet streams and reports the server's memory before and after
  sessions   starts --connections streams that nobody reads and reports the same
  idle-sessions
             begins --connections MCP sessions, which need no connection, and reports the same
  listeners  connects --connections MCP clients that listen on the event stream of their session
             or transport, and reports the same
  routes     prints the possible values of --transport and --revision
Options:
  --host ADDRESS       127.0.0.1
  --connections N      64
  --transport NAME     for echo and listeners: http (default), sse, ws, unix or stdio
  --revision NAME      of MCP; default: the newest that the transport supports
  --unix PATH          connect to this socket instead of a port
  --seconds S          measured time, 3; --warmup S before it, 1
  --via call|get|ws    how chunks are delivered: progress of tools/call stream_numbers (default),
                       GET /streams/{id}, or /ws
  --count N            chunks of a stream, 1000
  --interval-us N      pause between chunks; 0: none; -1: none, and each is flushed separately
  --wait-ms N          the longest wait of a long poll, 10000
  --max-chunks N       the most chunks in a poll's reply; 0: no limit
  --stagger            spread the starts of paced streams over one interval
  --text-bytes N       length of the echoed text, 32
  --lazy-us N          sleep this long before each check of the sockets, so that no reader is woken
  --keep-awake         let no processor halt, because waking a halted one takes a virtual machine
                       up to milliseconds; the CPU time of that counts as the load generator's
  --settle-ms N        wait this long before reading the server's memory, 300
  --subscribe PATH --publish PATH --publish-window N --message-bytes N
                       for a broker's fan-out; the publisher is on average at most N messages ahead
  --server-pid PID     the process whose CPU time and memory to report
  --hold               after an idle or sessions report, keep everything open until stdin closes
)";

namespace {

template <class T>
T parse_number(std::string_view flag, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(std::string(flag) + ": not a number in range: " + std::string(text));
  }
  return value;
}

Delivery parse_delivery(std::string_view text) {
  if (text == "call") return Delivery::call;
  if (text == "get") return Delivery::get;
  if (text == "ws") return Delivery::websocket;
  throw std::runtime_error("--via: give call, get or ws");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("no mode given; see --help");
  Options options;
  options.mode = argv[1];

  using Store = std::function<void(std::string_view flag, std::string_view value)>;
  const auto number = [](auto& member) -> Store {
    return [&member](std::string_view flag, std::string_view value) {
      member = parse_number<std::remove_reference_t<decltype(member)>>(flag, value);
    };
  };
  const auto text = [](std::string& member) -> Store {
    return [&member](std::string_view, std::string_view value) { member = value; };
  };
  const std::map<std::string_view, Store> valued = {
      {"--host", text(options.host)},
      {"--port", number(options.port)},
      {"--connections", number(options.connections)},
      {"--warmup", number(options.warmup_s)},
      {"--seconds", number(options.seconds)},
      {"--count", number(options.count)},
      {"--interval-us", number(options.interval_us)},
      {"--wait-ms", number(options.wait_ms)},
      {"--max-chunks", number(options.max_chunks)},
      {"--settle-ms", number(options.settle_ms)},
      {"--text-bytes", number(options.text_bytes)},
      {"--lazy-us", number(options.lazy_us)},
      {"--subscribe", text(options.subscribe_path)},
      {"--publish", text(options.publish_path)},
      {"--publish-window", number(options.publish_window)},
      {"--message-bytes", number(options.message_bytes)},
      {"--server-pid", number(options.server_pid)},
      {"--transport", text(options.transport)},
      {"--revision", text(options.revision)},
      {"--unix", text(options.unix_path)},
      {"--via",
       [&](std::string_view, std::string_view value) { options.delivery = parse_delivery(value); }},
  };
  const std::map<std::string_view, bool*> switches = {{"--stagger", &options.stagger},
                                                      {"--hold", &options.hold},
                                                      {"--keep-awake", &options.keep_awake}};

  for (int i = 2; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--") {
      options.command.assign(argv + i + 1, argv + argc);
      break;
    }
    if (const auto found = switches.find(flag); found != switches.end()) {
      *found->second = true;
      continue;
    }
    const auto found = valued.find(flag);
    if (found == valued.end()) throw std::runtime_error("unknown option " + std::string(flag));
    if (++i == argc) throw std::runtime_error(std::string(flag) + " needs a value");
    found->second(flag, argv[i]);
  }
  if (options.port == 0 && options.unix_path.empty() && options.command.empty()) {
    throw std::runtime_error("give --port, --unix or a command after --");
  }
  if (options.connections == 0) throw std::runtime_error("--connections: give at least 1");
  return options;
}

}  // namespace sluice::bench
