#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server.hpp"

namespace {

const char* const kUsage =
    R"(sluice_bench_floor --port N [OPTION...]

The least a server can do: returns the bytes of sluice's replies without reading the requests. The
load generator beside it sends those that fit the options.
  --echo-reply FILE  answer every POST with this HTTP reply
  --call             a POST is a tools/call that streams (else a `run`, then its polls)
  --shared           every GET reads one endless stream
  --producer         another process makes the chunks of --shared, one every --interval-us, and
                     hands them over in shared memory with an eventfd
  --count N          chunks of a stream, 1000
  --interval-us N    pause between chunks; 0 none
  --per-write N      chunks in one send(), or in one poll's reply; 1
)";

sluice::bench::FloorOptions parse(int argc, char** argv) {
  sluice::bench::FloorOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--call") {
      options.call = true;
      continue;
    }
    if (flag == "--shared") {
      options.shared = true;
      continue;
    }
    if (flag == "--producer") {
      options.producer = true;
      continue;
    }
    if (++i == argc) throw std::runtime_error(flag + " needs a value");
    const std::string_view text = argv[i];
    const auto number = [&](auto& member) {
      if (std::from_chars(text.data(), text.data() + text.size(), member).ec != std::errc()) {
        throw std::runtime_error(flag + ": give a number");
      }
    };
    if (flag == "--port") {
      number(options.port);
    } else if (flag == "--echo-reply") {
      options.echo_reply = text;
    } else if (flag == "--count") {
      number(options.count);
    } else if (flag == "--interval-us") {
      number(options.interval_us);
    } else if (flag == "--per-write") {
      number(options.per_write);
    } else {
      throw std::runtime_error("unknown option " + flag);
    }
  }
  if (options.port == 0) throw std::runtime_error("--port is missing");
  if (options.producer && !(options.shared && options.interval_us > 0)) {
    throw std::runtime_error("--producer needs --shared and --interval-us");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    sluice::bench::FloorServer(parse(argc, argv)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_bench_floor: %s\n", error.what());
    return 2;
  }
}
