"""Where the time of a training goes, from stamps that the seams take in a few of its turns."""
