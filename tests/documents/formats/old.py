import torch

print "old"
