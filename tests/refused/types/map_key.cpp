// expect: the keys of a JSON object are text: use std::string as the key type
#include <map>

#include <sluice/schema.hpp>

struct In {
  std::map<int, int> squares;
};
auto schema = sluice::schema_of<In>();
