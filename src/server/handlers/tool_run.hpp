#pragma once

#include <memory>
#include <string>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "rpc/message.hpp"
#include "server/calls/pending_request.hpp"
#include "server/catalog/definition.hpp"
#include "server/workers/long_messages.hpp"

namespace sluice {

/// The arguments of a `tools/call`: an object, empty if there are none.
const json::value& arguments_of(const json::object& params);

/// Decodes what the handler of `tool` takes, which has a Tool::decode. Thread-safe.
detail::DecodedInput decode_input(const Tool& tool, const json::object& arguments) noexcept;

/// From so many values on, what a handler takes is decoded first, so that its memory is known.
inline constexpr std::size_t kFewValues = 1000;

/// Starts a tool with a Tool::Deferred. `values` is the number of values in `arguments`. Otherwise
/// like run_tool(), but returns the error that is to be the answer.
Result<void> start_tool(const Tool& tool, const json::object& arguments, std::size_t values,
                        std::shared_ptr<PendingRequest> call,
                        detail::DecodedInput* decoded = nullptr);

/// Runs `tool` to answer `call`, which keeps the catalog of the tool. `params` are those of the
/// `tools/call`, whose arguments must follow the input schema of the tool. They need to exist only
/// during this function. `decoded` is what decode_input() made of the arguments; null: it was
/// not called. Its memory is charged to the client while the call is open.
void run_tool(const Tool& tool, const json::object& params,
              const std::shared_ptr<PendingRequest>& call, detail::DecodedInput* decoded = nullptr);

/// The same for the `tools/call` in `text`. Before that, `checks` parses it on a worker thread,
/// checks its arguments against `input` and decodes them. If they do not follow it, the call is
/// refused.
void run_tool_checked(LongMessages& checks, const Tool& tool, const JsonSchema& input,
                      std::string text, const std::shared_ptr<PendingRequest>& call);

}  // namespace sluice
