// expect: a union has no JSON form: use std::variant
#include <sluice/schema.hpp>

union Either {
  int a;
  float b;
};
struct In {
  Either either;
};
auto schema = sluice::schema_of<In>();
