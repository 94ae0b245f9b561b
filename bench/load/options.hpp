#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

/// How streamed chunks are delivered: progress of a `tools/call`, an event stream of `GET
/// /streams/{id}`, or WebSocket messages.
enum class Delivery : std::uint8_t { call, get, websocket };

/// The options of the command line. kUsage explains each member.
struct Options {
  std::string mode;
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::size_t connections = 64;
  double warmup_s = 1;
  double seconds = 3;
  std::int64_t count = 1000;
  std::int64_t interval_us = 0;
  std::int64_t wait_ms = 10000;
  std::int64_t max_chunks = 0;
  std::int64_t settle_ms = 300;
  std::size_t text_bytes = 32;
  std::int64_t lazy_us = 0;
  bool stagger = false;
  Delivery delivery = Delivery::call;
  std::string transport = "http";
  std::string revision;
  std::string unix_path;
  std::vector<std::string> command;
  std::string subscribe_path;
  std::string publish_path;
  std::size_t publish_window = 4;
  std::size_t message_bytes = 150;
  int server_pid = 0;
  bool hold = false;
  bool keep_awake = false;
};

extern const char* const kUsage;

/// Throws a std::runtime_error that names the argument and what is allowed.
Options parse_options(int argc, char** argv);

}  // namespace sluice::bench
