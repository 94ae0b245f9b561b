#include "plan.hpp"

#include <algorithm>

#include "dice.hpp"

namespace sluice::faults {
namespace {

using namespace std::chrono_literals;

bool fits(const Fault& fault, const Plan& plan, bool is_connecting) {
  return std::ranges::count(fault.transports, plan.transport) > 0 &&
         (plan.revision->era == Era::legacy ? fault.legacy : fault.modern) &&
         (is_connecting ? fault.connecting : fault.calling);
}

bool is_about_bytes(Kind kind) {
  return std::ranges::count(kManners, kind) > 0 ||
         std::ranges::any_of(kPlaces,
                             [kind](Place place) { return manner_of(kind, place) != Kind::none; });
}

/// A refusal for `fault` to spoil, or none if it spoils none.
const Fault* draw_refusal(Dice& dice, const Plan& plan, const Fault& fault, bool is_connecting) {
  if (manner_of(fault.kind, Place::refusal) == Kind::none) return &fault_of(Kind::none);
  return dice.pick(refusals_for(plan, is_connecting));
}

const Fault* draw_fault(Dice& dice, const Plan& plan, bool is_connecting) {
  std::vector<const Fault*> fitting;
  for (const Fault& fault : all_faults()) {
    if (fits(fault, plan, is_connecting)) fitting.push_back(&fault);
  }
  // Bytes can go wrong at more places than messages, so these faults are drawn more often.
  if (dice.one_in(is_connecting ? 2 : 3)) {
    std::erase_if(fitting, [](const Fault* fault) { return !is_about_bytes(fault->kind); });
  }
  return dice.pick(fitting);
}

Plan draw(std::uint64_t seed, const Fault* fault, std::optional<Transport> transport,
          bool is_connecting) {
  Dice dice(seed);
  const Fault* const none = &fault_of(Kind::none);
  Plan plan{.seed = seed,
            .transport = transport.value_or(dice.pick(kTransports)),
            .revision = nullptr,
            .is_pinned = true,
            .connecting = none,
            .refusal = none,
            .calls = {}};
  std::vector<const Revision*> fitting;
  for (const Revision& revision : revisions()) {
    plan.revision = &revision;
    const bool is_spoken = plan.transport != Transport::sse || revision.era == Era::legacy;
    if (is_spoken && (fault == nullptr || fits(*fault, plan, is_connecting))) {
      fitting.push_back(&revision);
    }
  }
  plan.revision = dice.pick(fitting);
  if (is_connecting) {
    plan.connecting = fault != nullptr ? fault : draw_fault(dice, plan, true);
    plan.refusal = draw_refusal(dice, plan, *plan.connecting, true);
  } else {
    plan.is_pinned = !dice.one_in(4);
  }
  const std::size_t calls = 1 + dice.below(3);
  for (std::size_t i = 0; i < calls; ++i) {
    PlannedCall& call = plan.calls.emplace_back();
    // A connection that suffers from two faults does not say which of them came first. Over HTTP
    // each request has its own.
    const bool is_other =
        fault == nullptr && !is_connecting && plan.transport == Transport::http && dice.one_in(2);
    const bool is_faulty = i == 0 ? !is_connecting : is_other;
    call.fault = none;
    if (is_faulty) {
      call.fault = fault != nullptr ? fault : draw_fault(dice, plan, false);
      const Fault* const refusal = draw_refusal(dice, plan, *call.fault, false);
      if (refusal != none) plan.refusal = refusal;
    }
    call.begins = dice.one_in(2) ? 0ms : std::chrono::milliseconds(dice.below(200));
    if (fault == nullptr && dice.one_in(6)) {
      call.cancelled = std::chrono::milliseconds(dice.below(100));
    }
    if (fault == nullptr && dice.one_in(6)) call.timeout = 30s;
    call.progress = dice.one_in(2) ? 0 : static_cast<int>(dice.below(4));
  }
  if (fault == nullptr) {
    if (dice.one_in(8)) plan.reaction = dice.one_in(2) ? Reaction::cancels : Reaction::leaves;
    if (dice.one_in(12)) plan.leaves = std::chrono::milliseconds(dice.below(300));
  }
  // Whether the fault strikes before or after another call must not always be the same.
  if (!is_connecting) std::swap(plan.calls.front(), plan.calls[dice.below(calls)]);
  return plan;
}

}  // namespace

std::string Plan::describe() const {
  const auto milliseconds = [](Duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
  };
  std::string text = "seed " + std::to_string(seed) + ": ";
  text.append(name_of(transport)).append(", ").append(revision->name);
  text.append(is_pinned ? "" : " (to be found out)").append("; connecting: ");
  text.append(connecting->name);
  for (const PlannedCall& call : calls) {
    text.append("; call after ").append(milliseconds(call.begins)).append(" ms: ");
    text.append(call.fault->name);
    if (call.cancelled) text.append(", cancelled after ").append(milliseconds(*call.cancelled));
    if (call.timeout) text.append(", in 30 s");
    if (call.progress > 0) text.append(", progress ").append(std::to_string(call.progress));
  }
  if (refusal->kind != Kind::none) text.append("; refusal: ").append(refusal->name);
  if (cut_at) text.append("; cut at ").append(std::to_string(*cut_at));
  if (reaction == Reaction::cancels) text.append("; an answer makes the client cancel the others");
  if (reaction == Reaction::leaves) text.append("; an answer makes the client leave");
  if (leaves) text.append("; the client leaves after ").append(milliseconds(*leaves)).append(" ms");
  return text;
}

std::vector<const Fault*> refusals_for(const Plan& plan, bool is_connecting) {
  std::vector<const Fault*> fitting;
  for (const Fault& each : all_faults()) {
    if (is_refusal(each.kind) && fits(each, plan, is_connecting)) fitting.push_back(&each);
  }
  return fitting;
}

Plan draw_plan(std::uint64_t seed) {
  return draw(seed, nullptr, {}, seed % 6 == 0);
}

Plan draw_plan(std::uint64_t seed, const Fault& fault, Transport transport, bool is_connecting) {
  return draw(seed, &fault, transport, is_connecting);
}

}  // namespace sluice::faults
