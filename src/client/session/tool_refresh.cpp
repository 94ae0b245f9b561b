#include "client/session/tool_refresh.hpp"

#include <string>
#include <utility>

#include "client/session/client_session.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr int kMaxToolPages = 100;

void read_page(ClientSession& session, const std::string& cursor, int pages, Duration patience,
               std::function<void(Result<void>)> done) {
  json::object params;
  if (!cursor.empty()) params["cursor"] = cursor;
  session.begin("tools/list", std::move(params), {.idle_timeout = patience},
                {.on_answer = [&session, pages, patience,
                               done = std::move(done)](const Result<json::object>& answer) {
                  if (!answer) return done(std::unexpected(answer.error()));
                  const std::string_view next = text_at(*answer, "nextCursor");
                  if (next.empty() || pages + 1 >= kMaxToolPages) return done({});
                  read_page(session, std::string(next), pages + 1, patience, done);
                }});
}

}  // namespace

void refresh_tools(ClientSession& session, Duration patience,
                   std::function<void(Result<void>)> done) {
  read_page(session, {}, 0, patience, std::move(done));
}

}  // namespace sluice
