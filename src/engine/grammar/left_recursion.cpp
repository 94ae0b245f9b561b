#include "engine/grammar/left_recursion.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using RuleNumber = std::uint32_t;
using LeftKind = Grammar::Element::Kind;

/// Which rules can be empty: those that have an alternative which consists only of rules that can
/// be empty.
std::vector<bool> empty_rules(const Grammar& grammar, std::size_t rules) {
  struct Alternative {
    RuleNumber rule = 0;
    std::size_t missing = 0;  // elements that are not yet known to be empty
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<std::size_t>> mentions(
      rules);  // by rule: the alternatives that mention it
  std::vector<bool> empty(rules);
  std::vector<RuleNumber> found;
  const auto is_empty = [&](RuleNumber rule) {
    if (!empty[rule]) found.push_back(rule);
    empty[rule] = true;
  };
  for (RuleNumber rule = 0; rule < rules; ++rule) {
    for (std::uint32_t at : grammar.alternatives(rule)) {
      const std::uint32_t first = at;
      while (grammar.element(at).kind == LeftKind::rule) ++at;
      if (grammar.element(at).kind != LeftKind::end) continue;
      for (std::uint32_t i = first; i < at; ++i) {
        mentions[grammar.element(i).value].push_back(alternatives.size());
      }
      alternatives.push_back({.rule = rule, .missing = at - first});
      if (at == first) is_empty(rule);
    }
  }
  while (!found.empty()) {
    const RuleNumber rule = found.back();
    found.pop_back();
    for (const std::size_t i : mentions[rule]) {
      if (--alternatives[i].missing == 0) is_empty(alternatives[i].rule);
    }
  }
  return empty;
}

struct Beginning {
  RuleNumber rule = 0;
  bool goes_on = false;  // more elements follow the rule
};

std::vector<std::vector<Beginning>> beginnings(const Grammar& grammar, std::size_t rules) {
  const std::vector<bool> empty = empty_rules(grammar, rules);
  std::vector<std::vector<Beginning>> all(rules);
  for (RuleNumber rule = 0; rule < rules; ++rule) {
    for (std::uint32_t at : grammar.alternatives(rule)) {
      for (; grammar.element(at).kind == LeftKind::rule; ++at) {
        const RuleNumber first = grammar.element(at).value;
        all[rule].push_back(
            {.rule = first, .goes_on = grammar.element(at + 1).kind != LeftKind::end});
        if (!empty[first]) break;
      }
    }
  }
  return all;
}

/// For each rule, the number of its cycle. Two rules have the same number if each can begin with
/// the other (Tarjan's strongly connected components, without recursion).
std::vector<std::uint32_t> cycles(const std::vector<std::vector<Beginning>>& graph) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Visit {
    RuleNumber rule = 0;
    std::size_t next = 0;
  };
  std::vector<std::uint32_t> order(graph.size(), kNone);
  std::vector<std::uint32_t> lowest(graph.size());
  std::vector<std::uint32_t> cycle(graph.size(), kNone);
  std::vector<RuleNumber> open;
  std::vector<Visit> path;
  std::uint32_t visited = 0;
  const auto enter = [&](RuleNumber rule) {
    order[rule] = lowest[rule] = visited++;
    open.push_back(rule);
    path.push_back({.rule = rule});
  };
  for (RuleNumber start = 0; start < graph.size(); ++start) {
    if (order[start] == kNone) enter(start);
    while (!path.empty()) {
      const RuleNumber rule = path.back().rule;
      if (path.back().next < graph[rule].size()) {
        const RuleNumber first = graph[rule][path.back().next++].rule;
        if (order[first] == kNone) {
          enter(first);
        } else if (cycle[first] == kNone) {
          lowest[rule] = std::min(lowest[rule], order[first]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        lowest[path.back().rule] = std::min(lowest[path.back().rule], lowest[rule]);
      }
      if (lowest[rule] != order[rule]) continue;
      while (cycle[rule] == kNone) {
        cycle[open.back()] = rule;
        open.pop_back();
      }
    }
  }
  return cycle;
}

}  // namespace

std::optional<std::uint32_t> left_recursive_rule(const Grammar& grammar, std::size_t rules) {
  const auto graph = beginnings(grammar, rules);
  const auto cycle = cycles(graph);
  for (RuleNumber rule = 0; rule < rules; ++rule) {
    for (const Beginning& beginning : graph[rule]) {
      if (beginning.goes_on && cycle[beginning.rule] == cycle[rule]) return rule;
    }
  }
  return std::nullopt;
}

}  // namespace sluice
