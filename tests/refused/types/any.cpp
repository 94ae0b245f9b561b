// expect: nor has one with a std::any
#include <any>

#include <sluice/schema.hpp>

struct In {
  std::any any;
};
auto schema = sluice::schema_of<In>();
