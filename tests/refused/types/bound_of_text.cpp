// expect: constraints not satisfied
#include <string>

#include <sluice/schema.hpp>

struct In {
  std::string name;
  static auto describe() { return sluice::describe(sluice::field<&In::name>().minimum(1)); }
};
auto schema = sluice::schema_of<In>();
