// expect: a character has no JSON form: use std::string
#include <sluice/schema.hpp>

struct In {
  char letter;
};
auto schema = sluice::schema_of<In>();
