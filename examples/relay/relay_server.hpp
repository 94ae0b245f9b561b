#pragma once

#include "sluice/server.hpp"

/// The server of the demo: `stream_numbers`, which says 2i every 100 ms, `add`, `get_secret_word`
/// and `get_current_weather`, which reads a table.
sluice::Server make_relay_server();
