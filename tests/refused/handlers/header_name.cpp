// expect: HeaderName.* is not a constant expression
#include <string>

#include <sluice/schema.hpp>

struct In {
  std::string region;
  static auto describe() {
    return sluice::describe(sluice::field<&In::region>().header("the region"));
  }
};
auto schema = sluice::schema_of<In>();
