#pragma once

// How an agent runs: its tools, when its model is shown what they write, and its limits.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/chat.hpp"
#include "sluice/client.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/model.hpp"
#include "sluice/run_store.hpp"
#include "sluice/spans.hpp"

namespace sluice {

/// A tool that an agent can call. The hints are those of MCP (Tool, annotations), with its
/// defaults.
struct AgentTool {
  std::string name = {};  // as the model knows it; unique within an agent
  std::string description = {};
  json::object input_schema = {};
  bool is_read_only = false;
  bool is_idempotent = false;  // the same call again changes nothing more
  std::string server = {};     // the label of the server that has it
};

/// A server whose tools an agent may call. Functions of the program itself are tools of a
/// sluice::Server: `{"own", connect(server)}`.
struct AgentServer {
  /// Names it in AgentTool. Stands before the name of a tool that another server has too.
  std::string label;
  Client client;
  /// What is kept of a run knows the server by it: a call is taken up again, or made later, at this
  /// server alone, and at none if several have the same. Empty: the label.
  std::string identity = {};
};

/// When the model is shown what a running tool has written so far, and asked what it makes of it.
struct ReactionPolicy {
  enum class When : std::uint8_t {
    pass_through,  // never: it sees the result alone
    every_chunk,   // at once
    every_n,       // after `every` chunks
    debounce,      // when the tool pauses for `quiet`, or `max_wait` or `max_bytes` is reached
    match,         // when a line contains `pattern`
    on_demand,     // when it asks with tool_status
    on_idle,       // when it has nothing else to do
  };
  When when = When::pass_through;
  std::uint32_t every = 1;
  std::chrono::nanoseconds quiet = std::chrono::milliseconds(300);
  std::chrono::nanoseconds max_wait = std::chrono::seconds(2);
  std::size_t max_bytes = 4096;
  std::string pattern = {};  // RE2

  /// Whether an answer that the model is giving is broken off, rather than waited for.
  bool interrupts = false;
  /// The least time between two reactions to a call.
  std::chrono::nanoseconds min_interval = {};
  std::uint32_t max_reactions = 20;       // of a call; 0: no limit
  std::uint64_t max_reaction_tokens = 0;  // that the model writes in them; 0: no limit
};

/// What may be changed or refused on its way. Each function returns what is to be used instead, or
/// an error, whose text is told to the model or, for the input and the output, ends the run. They
/// run on the thread of all clients and must not wait. An empty one lets everything through. What
/// they throw counts as an error without its text. An input of which nothing is left is an error;
/// its images go with what is left.
struct Guardrails {
  std::function<std::expected<std::string, Error>(std::string text)> input = {};
  std::function<std::expected<std::string, Error>(std::string text)> output =
      {};  // the last answer
  std::function<std::expected<json::object, Error>(const AgentTool&, json::object arguments)>
      arguments = {};
  /// The images of a result go with it, unless there is an error.
  std::function<std::expected<std::string, Error>(const AgentTool&, std::string text)> result = {};
  /// Of what the model is shown while a tool runs. An image goes with the text that says what it
  /// is, unless that is changed.
  std::function<std::expected<std::string, Error>(const AgentTool&, std::string text)> chunk = {};
};

/// What a model costs for each million tokens, in whatever currency the user thinks in.
struct TokenPrice {
  double prompt = 0;                  // that it reads
  std::optional<double> cached = {};  // that it has read before; empty: as `prompt`
  double completion = 0;              // that it writes
};

/// What a run may use up. At a limit, but for that of reactions, the model is asked for one last
/// answer, without tools, and the run is incomplete.
struct RunBudget {
  std::uint32_t turns = 20;  // answers of the model
  /// Answers to what running tools have written; not counted as turns. After these, the model is
  /// shown results alone.
  std::uint32_t reactions = 50;
  std::uint64_t tokens = 0;  // that the model has read and written; 0: no limit
  double cost = 0;           // of these, by AgentOptions::price; 0: no limit
  /// After it, the model is asked for a last answer. 0: no limit.
  std::chrono::nanoseconds time = {};
  /// How long a last answer may take from when it is asked for, whatever is left of `time`, if that
  /// is limited. What it has said by then is the answer. The time for which the model is held up
  /// because nobody takes the run's events does not count.
  std::chrono::nanoseconds last_answer = std::chrono::seconds(30);
};

/// What to do with the output of a tool that nobody takes.
enum class OutputOverflow : std::uint8_t {
  block,     // the tool's server is not read any more (CallOptions::holds_up), until half is taken
  coalesce,  // chunks that wait become one event; beyond the limit as with block
  drop_oldest,  // the oldest chunks are dropped, which the next event of the call says
};

/// The limits of the events of a run that wait to be taken.
struct RunEventsOptions {
  OutputOverflow overflow = OutputOverflow::coalesce;
  /// How much of one call may wait: bytes of its output, and chunks.
  std::size_t max_call_bytes = std::size_t{1} << 20U;
  std::size_t max_call_events = 1000;
  /// How many pieces of a model's text may wait before the model is held up. It is held up, and no
  /// further call begins, also if all events that are not of running calls, such as results, have
  /// as many bytes as those of one call may have.
  std::size_t max_model_events = 1000;
};

/// The policy of a call of this tool with these arguments; nothing: that of the tool. Runs on the
/// thread of all clients and must not wait. What makes no sense, or is thrown, counts as nothing,
/// and is logged.
using PolicyRule = std::function<std::optional<ReactionPolicy>(const AgentTool& tool,
                                                               const json::object& arguments)>;

/// Why a call of this tool with these arguments must be approved; an empty text: it need not be.
/// Runs on the thread of all clients and must not wait.
using ApprovalRule =
    std::function<std::string(const AgentTool& tool, const json::object& arguments)>;

/// An ApprovalRule: calls of tools that do not say that they only read.
std::string unless_read_only(const AgentTool& tool, const json::object& arguments);

struct AgentOptions {
  std::string name = "agent";     // tells apart the agents of a run that is handed over
  std::string instructions = {};  // a system message
  std::vector<AgentServer> servers = {};

  ReactionPolicy policy = {};  // of tools that have none of their own
  std::map<std::string, ReactionPolicy, std::less<>> policies = {};  // by tool
  PolicyRule policy_rule = {};  // for single calls; empty: all have that of their tool
  ApprovalRule approval = {};   // empty: no call must be
  Guardrails guardrails = {};

  RunBudget budget = {};
  std::size_t max_running = 8;            // calls at a time, 1 or more; further ones wait
  std::size_t max_running_of_server = 8;  // 1 or more
  std::size_t max_calls_of_answer = 32;   // further ones fail
  std::size_t max_inputs = 100;           // that wait to be delivered
  /// Of a call, without output; 0: none. Time in which its server has asked the user does not
  /// count. The server of a task is asked for its state, and given up if it does not say it for so
  /// long.
  std::chrono::nanoseconds idle_timeout = std::chrono::minutes(5);
  std::chrono::nanoseconds call_timeout = {};  // of a call, in total; 0: none
  /// How long calls may go on that still run after the last answer; their output is for the user.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(500);
  std::map<std::string, std::chrono::nanoseconds, std::less<>> graces = {};  // by tool, instead
  RunEventsOptions events = {};
  /// Where runs are kept, so that Agent::resume() can go on with them; null: nowhere. A run is kept
  /// before each call is made, and fails if that is not possible. Calls become tasks wherever their
  /// server lets them. A run waits for the store, but no other run does.
  std::shared_ptr<RunStore> store = {};

  /// Who takes the spans of the runs, such as otlp_exporter(); null: nobody. They are of each run,
  /// answer, call and reaction, and hold no texts of users, models or tools.
  std::shared_ptr<SpanExporter> spans = {};

  /// Is asked in place of the agent's model for answers to what running tools have written, such as
  /// a cheaper one. It is shown the same. If it fails, the agent's model takes its place for the
  /// rest of the run.
  std::optional<Model> reaction_model = {};

  /// Whether calls ask for parts of their results before these (CallOptions::partial_results; draft
  /// SEP-2998, which may change). They are output of the call.
  bool partial_results = false;

  /// What the agent's model costs, and the one for reactions; empty: nothing, and as `price`. An
  /// answer costs what its usage says, so nothing if its server tells none. One that is broken off
  /// before its server tells any costs what the one before has read, and the pieces that came.
  std::optional<TokenPrice> price = {};
  std::optional<TokenPrice> reaction_price = {};

  SamplingParams sampling = {};
  std::optional<int> max_tokens = {};  // of one answer
  /// The most bytes of one answer. A longer one is broken off, as by its length.
  std::size_t max_answer = std::size_t{1} << 20U;
  /// Whether the model's template demands that users and assistants alternate, so that inputs and
  /// updates must be parts of the messages before them. Of a model in this process that is known.
  bool alternates = false;
  /// The most bytes of one interim update. Of a longer one the model is shown the end.
  std::size_t max_update = std::size_t{8} << 10U;
  /// The most bytes of a result. Of a longer one the model is shown the beginning and the end.
  std::size_t max_result = std::size_t{256} << 10U;
  /// How many images of tools and users the model is shown, the last ones, for a model that sees;
  /// 0: none, and inputs may have none. It knows others by a text that says what they are, and so
  /// after Agent::resume(). Images are PNG, JPEG, GIF or WebP of at most 8 MiB in Base64. None, if
  /// the model's server refuses a request with images, and where roles alternate.
  std::size_t max_images = 0;

  /// Whether tool_status and tool_cancel are offered beside the tools.
  bool offers_call_tools = true;
  /// Whether the instructions explain to the model what updates are.
  bool explains_updates = true;
  /// Whether the same call may run twice at a time.
  bool allows_duplicates = false;
  /// Whether calls are cancelled by an input that interrupts. If not, they go on.
  bool cancels_on_interrupt = false;
  /// Whether the model may go on while a tool runs.
  bool detaches = true;
};

/// How one agent hands conversations over to another.
struct HandoffOptions {
  /// What becomes of the calls that run then.
  enum class RunningCalls : std::uint8_t {
    transfer,  // they go on, and the other agent is shown what they write, by its policies
    wait,      // they are waited for, unless an input comes that does not wait
    cancel,    // they are cancelled
  };
  std::string tool = {};         // that the model calls; empty: transfer_to_ and the other's name
  std::string description = {};  // of the tool; empty: that it hands over to the other
  RunningCalls running_calls = RunningCalls::transfer;
};

/// What a user says to a run that is under way.
struct RunInput {
  enum class When : std::uint8_t {
    asap,       // before the next answer; calls that run are not waited for
    when_idle,  // once the model has nothing else to do
    silent,     // before the next answer, whatever causes that
    interrupt,  // at once: an answer that is being given is broken off
  };
  std::string text;
  When when = When::asap;
  std::vector<ChatImage> images = {};
};

}  // namespace sluice
