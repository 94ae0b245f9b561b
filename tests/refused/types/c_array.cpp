// expect: a C array has no JSON form: use std::array or std::vector
#include <sluice/schema.hpp>

struct In {
  int first;
  int numbers[3];
};
auto schema = sluice::schema_of<In>();
